# frozen_string_literal: true

require_relative "../test_helper"
require_relative "scratch_repository"

# Bundles, compiled extensions and other versions of gems. All gems are built here or come with Ruby, so the tests
# need no network.
class WorkspaceBundlesTest < Minitest::Test
  include ScratchRepository

  GEMSPEC = <<~RUBY
    Gem::Specification.new do |spec|
      spec.name = "shop"
      spec.version = "1.%d"
      spec.summary = "a shop"
      spec.authors = ["a"]
      spec.files = `git ls-files -z`.split("\\0")
      raise "no files" if spec.files.empty?
      %s
    end
  RUBY
  C_SOURCE = <<~C
    #include <ruby.h>
    static VALUE price(VALUE self) { return INT2FIX(%d); }
    void Init_shop_native(void) { rb_define_global_function("native_price", price, 0); }
  C

  def gemspec(version, *lines) = format(GEMSPEC, version, lines.join("\n  "))

  def toy_gemspec(name, version, dependencies = {})
    <<~RUBY
      Gem::Specification.new do |spec|
        spec.name, spec.version, spec.summary, spec.authors = "#{name}", "#{version}", "x", ["a"]
        spec.files, spec.require_paths = ["#{name}.rb"], ["."]
        #{dependencies.map { |other, wanted| "spec.add_dependency #{other.inspect}, #{wanted.inspect}" }.join("\n")}
      end
    RUBY
  end

  # Installs a gem into a folder that stands for the Ruby's own gems, as `gem install` does.
  def install_gem(name, version, dependencies: {})
    write({ "specifications/#{name}-#{version}.gemspec" => toy_gemspec(name, version, dependencies),
            "gems/#{name}-#{version}/#{name}.rb" => "#{name.upcase} = '#{version}'\n" }, dir: File.join(@root, "gems"))
  end

  # Builds the gem's file.
  def package_gem(name, version, folder)
    write({ "#{name}.rb" => "#{name.upcase} = '#{version}'\n", "#{name}.gemspec" => toy_gemspec(name, version) },
          dir: folder)
    out, status = Open3.capture2e(RUBY, "-S", "gem", "build", "--silent", "#{name}.gemspec", chdir: folder)
    assert_predicate status, :success?, out
    FileUtils.rm(File.join(folder, "#{name}.rb"))
  end

  def with_gems = clean_environment.merge("GEM_PATH" => [File.join(@root, "gems"), *default_path].join(":"))

  # The folder may contain gems of other programs.
  def default_path = @default_path ||= Open3.capture2(CommandLine::CLEAN, RUBY, "-e",
                                                      "puts Gem.path").first.lines(chomp: true)

  # Sets GEM_PATH for all child processes, as a user's shell would.
  def with_environment(variables)
    before = variables.keys.to_h { |name| [name, ENV.fetch(name, nil)] }
    ENV.update(variables)
    yield
  ensure
    ENV.update(before)
  end

  def test_two_revisions_of_a_gem_and_no_network
    gemfile = "gemspec\ngem 'toy', path: 'toy'\n"
    commit("Gemfile" => gemfile, "shop.gemspec" => gemspec(1), "lib/shop.rb" => "PRICE = 1", "toy/toy.rb" => "TOY = 1",
           ".gitignore" => "Gemfile.lock\n",
           "toy/toy.gemspec" => "Gem::Specification.new { |s| s.name, s.version, s.summary, s.authors, s.files, " \
                                "s.require_paths = 'toy', '1', 'x', ['a'], ['toy.rb'], ['.'] }")
    commit("shop.gemspec" => gemspec(2), "lib/shop.rb" => "PRICE = 2")
    write("bench.rb" => "require 'shop'\nrequire 'toy'\nputs PRICE, Gem.loaded_specs['shop'].version, " \
                        "$LOADED_FEATURES.grep(/shop.rb/), ENV['BUNDLE_GEMFILE']")
    before = fingerprint(@repo)
    subjects(side(rev: "HEAD~1"), side(rev: "HEAD"), side(dirty: true), script: File.join(@repo, "bench.rb")) do |list|
      list.zip(%w[1 2 2]) do |each, version|
        assert_equal [version, "1.#{version}", File.join(each.dir, "lib/shop.rb"), File.join(each.dir, "Gemfile")],
                     run_subject(each).lines(chomp: true)
        assert_equal "-rbundler/setup", each.env["RUBYOPT"]
      end
    end
    assert_empty before.difference(fingerprint(@repo)) + fingerprint(@repo).difference(before)
    @steps.clear
    subjects(side(rev: "HEAD~1"), side(rev: "HEAD"), script: File.join(@repo, "bench.rb")) do |list|
      run_subject(list.first)
    end
    assert_empty @steps # all of it was there
  end

  def test_the_lock_file_holds
    %w[1.0 2.0].each { |version| install_gem("toy", version) }
    commit("Gemfile" => "gem 'toy'\n", "Gemfile.lock" => lock("toy (1.0)", "toy"),
           "bench.rb" => "require 'toy'\nputs TOY")
    commit("Gemfile.lock" => lock("toy (2.0)", "toy"))
    commit("Gemfile" => "gem 'toy', '~> 1.0'\n") # stale
    git("rm", "--quiet", "Gemfile.lock")
    commit(".gitignore" => "Gemfile.lock", "Gemfile" => "gem 'toy'\n")
    write("Gemfile.lock" => lock("toy (1.0)", "toy"))
    with_environment(with_gems.slice("GEM_PATH")) do
      subjects(side(rev: "HEAD~3"), side(rev: "HEAD~2"), side(rev: "HEAD~1"), side(rev: "HEAD"), environment: with_gems,
               script: File.join(@repo, "bench.rb")) do |list|
        # A revision without a lock file starts from the user's lock file.
        assert_equal %w[1.0 2.0 1.0 1.0], list.map { |each| run_subject(each).strip }
      end
    end
    assert_equal lock("toy (1.0)", "toy"), File.read(File.join(@repo, "Gemfile.lock"))
  end

  def lock(specs, dependencies)
    "GEM\n  specs:\n    #{specs}\n\nPLATFORMS\n  ruby\n  x86_64-linux\n\nDEPENDENCIES\n  " \
    "#{dependencies}\n\nBUNDLED WITH\n   2.3.7\n"
  end

  def test_gems_that_are_gone_are_installed_again
    install_gem("toy", "1.0")
    commit("Gemfile" => "gem 'toy'\n", "bench.rb" => "require 'toy'\nputs TOY")
    with_environment(with_gems.slice("GEM_PATH")) do
      subject(side(rev: "HEAD"), environment: with_gems, script: File.join(@repo, "bench.rb")) do |one|
        assert_equal "1.0\n", run_subject(one)
      end
      FileUtils.rm_rf(File.join(@root, "gems"))
      assert_match(/\AHEAD \(\h{10}\): bundle install failed: .*toy.* \(log: .*\.log\)\z/,
                   failure(Pitwall::Workspace::BuildFailed, side(rev: "HEAD"), environment: with_gems,
                           script: File.join(@repo, "bench.rb")))
      assert_empty entries("trees")
      assert_empty entries("building")
    end
  end

  def test_a_bundle_that_cant_be_had
    commit("Gemfile" => "gem 'no-such-gem-anywhere'\n", "bench.rb" => "puts 1")
    text = failure(Pitwall::Workspace::BuildFailed, side(rev: "HEAD", name: "main"))
    log = %r{\(log: #{@cache}/logs/\h+\.log\)}
    assert_match(/\Amain \(\h{10}\): bundle install failed: .*no-such-gem-anywhere.* #{log}\z/, text)
    assert_equal 4, Pitwall::Workspace::BuildFailed.new.status
    assert_path_exists text[/log: (.*)\)/, 1]
    # Without the bundle, with --no-bundle.
    subject(side(rev: "HEAD"), bundle: false, script: File.join(@repo, "bench.rb")) do |one|
      assert_equal "1\n", run_subject(one)
    end
    commit("Gemfile" => "raise 'not today'\n")
    assert_includes failure(Pitwall::Workspace::BuildFailed, side(rev: "HEAD")), "not today"
  end

  def test_under_bundle_exec_and_with_a_gemfile_of_ones_own
    commit("Gemfile" => "raise 'not this one'", "gemfiles/small.gemfile" => "gem 'toy', path: '../toy'\n",
           "toy/toy.rb" => "TOY = 1", "bench.rb" => "require 'toy'\nputs TOY",
           "toy/toy.gemspec" => "Gem::Specification.new { |s| s.name, s.version, s.summary, s.authors, s.files, " \
                                "s.require_paths = 'toy', '1', 'x', ['a'], ['toy.rb'], ['.'] }")
    outer = clean_environment.merge("BUNDLE_GEMFILE" => File.join(@repo, "gemfiles/small.gemfile"),
                                    "RUBYOPT" => "-r/gems/bundler/setup -W0", "RUBYLIB" => "/gems/bundler",
                                    "BUNDLER_ORIG_RUBYLIB" => "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL",
                                    "BUNDLER_ORIG_RUBYOPT" => "-W0")
    subject(side(rev: "HEAD"), environment: outer, script: File.join(@repo, "bench.rb")) do |one|
      assert_equal "1\n", run_subject(one)
      assert_equal ["-rbundler/setup -W0", nil], one.env.values_at("RUBYOPT", "RUBYLIB")
      assert_equal File.join(one.dir, "gemfiles/small.gemfile"), one.env["BUNDLE_GEMFILE"]
    end
    # Another Ruby needs another bundle, in a clone.
    subjects(side, side(ruby: [RUBY, "-W1"]),
             environment: outer.merge("GEM_HOME" => "/gems", "BUNDLER_ORIG_GEM_HOME" => "/other"),
             script: File.join(@repo, "bench.rb")) do |list|
      assert_equal %W[1\n 1\n], list.map { |each| run_subject(each) }
      assert(list.all? { |each| each.dir.start_with?(@cache) && each.env["GEM_HOME"].start_with?(@cache) })
    end
    own = side(rev: "HEAD", env: { "BUNDLE_GEMFILE" => "gemfiles/small.gemfile", "RUBYOPT" => "-W1" })
    subject(own, script: File.join(@repo, "bench.rb")) do |one|
      assert_equal ["1\n", "-rbundler/setup -W1"], [run_subject(one), one.env["RUBYOPT"]]
    end
    missing = side(rev: "HEAD~1", env: { "BUNDLE_GEMFILE" => "gemfiles/small.gemfile" })
    git("mv", "gemfiles", "other")
    commit
    write("gemfiles/small.gemfile" => "")
    assert_includes failure(Pitwall::Workspace::BuildFailed, missing.dup.tap { |each| each.rev = "HEAD" }),
                    "it has no gemfiles/small.gemfile"
  end

  # A Gemfile that the user names outside of the repository is used by all sides.
  # `bundle exec` in the command uses that Gemfile too.
  def test_a_gemfile_outside_of_the_repository
    commit("one.rb" => "puts ENV['BUNDLE_GEMFILE']")
    gemfile = File.join(@cache, "Gemfile.own")
    FileUtils.mkdir_p(@cache)
    File.write(gemfile, "")
    write("two.rb" => "")
    outer = clean_environment.merge("BUNDLE_GEMFILE" => gemfile)
    subjects(side(rev: "HEAD"), side(dirty: true), environment: outer, script: File.join(@repo, "one.rb")) do |list|
      assert_equal [gemfile] * 2, list.map { |one| one.env["BUNDLE_GEMFILE"] || outer["BUNDLE_GEMFILE"] }
      assert(list.none? { |one| one.env.key?("BUNDLE_GEMFILE") && one.env["BUNDLE_GEMFILE"].nil? })
    end
    under = outer.merge("RUBYOPT" => "-r/gems/bundler/setup", "BUNDLER_ORIG_RUBYOPT" => "")
    subject(side(rev: "HEAD"), environment: under, script: File.join(@repo, "one.rb")) do |one|
      assert_nil one.env.fetch("BUNDLE_GEMFILE")
    end
  end

  def test_extensions_are_compiled_for_each_revision
    skip "peer absent: ruby's headers" unless File.file?(File.join(RbConfig::CONFIG["rubyhdrdir"].to_s, "ruby.h"))
    extension = "spec.extensions = ['ext/native/extconf.rb']"
    commit("Gemfile" => "gemspec\n", "shop.gemspec" => gemspec(1, extension), "lib/shop.rb" => "require 'shop_native'",
           ".gitignore" => "*.so\n*.o\nMakefile\n",
           "ext/native/extconf.rb" => "require 'mkmf'\ncreate_makefile('shop_native')\n",
           "ext/native/native.c" => format(C_SOURCE, 1))
    commit("ext/native/native.c" => format(C_SOURCE, 2))
    # With a `rake compile` task, and without a bundle.
    commit("ext/native/native.c" => format(C_SOURCE, 3), "Rakefile" => <<~RUBY)
      task :compile do
        Dir.chdir("ext/native") { sh "\#{FileUtils::RUBY} extconf.rb && make && cp shop_native.so ../../lib" }
        File.write("lib/by_rake", "")
      end
    RUBY
    write("bench.rb" => "$LOAD_PATH.unshift('lib')\nrequire 'shop'\nputs native_price")
    subjects(side(rev: "HEAD~2"), side(rev: "HEAD~1"), side(rev: "HEAD"),
             script: File.join(@repo, "bench.rb")) do |list|
      assert_equal %w[1 2 3], list.map { |each| run_subject(each).strip }
      assert_path_exists File.join(list.last.dir, "lib/by_rake")
    end
    # A change of a file that no build reads needs no compiling.
    commit("lib/shop.rb" => "require 'shop_native'\nPRICE = 1", "lib/shop/version.rb" => "VERSION = 1")
    subject(side(rev: "HEAD")) { nil }
    commit("lib/shop.rb" => "require 'shop_native'\nPRICE = 2", "test/shop_test.rb" => "")
    @steps.clear
    subject(side(rev: "HEAD"), script: File.join(@repo, "bench.rb")) { |one| assert_equal "3\n", run_subject(one) }
    assert_empty @steps.grep(/rake compile/)
    commit("lib/shop/version.rb" => "VERSION = 2")
    subject(side(rev: "HEAD")) { nil }
    refute_empty @steps.grep(/rake compile/)
    bench = File.read(File.join(@repo, "bench.rb"))
    git("reset", "--quiet", "--hard", "HEAD~3")
    write("bench.rb" => bench)
    subject(side(rev: "HEAD~1"), bundle: false, script: File.join(@repo, "bench.rb")) do |one|
      assert_equal "2\n", run_subject(one)
    end
    commit("ext/native/native.c" => "#error not in C\n", "Rakefile" => nil)
    text = failure(Pitwall::Workspace::BuildFailed, side(rev: "HEAD"))
    assert_match(/\AHEAD \(\h{10}\): make in ext\/native failed: .* \(log: .*\)\z/, text)
    assert_includes File.read(text[/log: (.*)\)/, 1]), "#error not in C"
    commit("Rakefile" => "task(:compile) { abort 'too tired' }")
    assert_includes failure(Pitwall::Workspace::BuildFailed, side(rev: "HEAD")), "rake compile failed: too tired"
  end

  def test_versions_of_a_gem_in_a_bundle
    %w[1.0 2.0 3.0].each { |version| install_gem("toy", version) }
    install_gem("box", "1.0", dependencies: { "toy" => ">= 1" })
    commit("Gemfile" => "gemspec\ngem 'toy', '~> 2.0', group: :test\ngroup(:test) { gem 'toy', '~> 2.0' }\n",
           "shop.gemspec" => gemspec(1, "spec.add_dependency 'box'"), "lib/shop.rb" => "")
    write("bench.rb" => "require 'toy'\nputs TOY, Gem.loaded_specs.key?('shop')")
    before = fingerprint(@repo)
    with_environment(with_gems.slice("GEM_PATH")) do
      subjects(side, side(gems: { "toy" => "1.0" }), side(rev: "HEAD", gems: { "toy" => "3.0" }),
               environment: with_gems, script: File.join(@repo, "bench.rb")) do |list|
        assert_equal %W[2.0\ntrue\n 1.0\ntrue\n 3.0\ntrue\n], list.map { |each| run_subject(each) }
        assert_equal "toy@3.0", list.last.facts["gems"]
      end
      # A gem that is not in the Gemfile, but is a dependency of a gem in the Gemfile.
      commit("Gemfile" => "gemspec\n")
      subjects(side, side(gems: { "toy" => "1.0" }), environment: with_gems,
               script: File.join(@repo, "bench.rb")) do |list|
        assert_equal %W[3.0\ntrue\n 1.0\ntrue\n], list.map { |each| run_subject(each) }
      end
      @steps.clear
      subjects(side, side(gems: { "toy" => "1.0" }), environment: with_gems, script: File.join(@repo, "bench.rb")) do
        nil
      end
      assert_empty @steps
      # The release of the gem that is developed in the repository.
      install_gem("shop", "0.9", dependencies: { "toy" => "= 1.0" })
      subjects(side(gems: { "shop" => "0.9" }), environment: with_gems, script: File.join(@repo, "bench.rb")) do |list|
        assert_equal "1.0\ntrue\n", run_subject(list.first)
      end
    end
    FileUtils.rm_f(File.join(@repo, ".git/COMMIT_EDITMSG"))
    tree = ->(list) { list.reject { |path,| path.include?("/.git") || path.end_with?("/Gemfile") || path == @repo } }
    assert_equal tree.call(before), tree.call(fingerprint(@repo))
  end

  def test_versions_of_a_gem_without_a_gemfile
    %w[1.0 2.0].each { |version| install_gem("toy", version) }
    write({ "bench.rb" => "require 'toy'\nputs TOY" }, dir: @root)
    bench = { dir: @root, environment: with_gems, script: File.join(@root, "bench.rb") }
    write({ "gemrc" => ":sources:\n- file://#{@root}/nowhere/\n" }, dir: @root)
    with_environment(with_gems.slice("GEM_PATH").merge("GEMRC" => File.join(@root, "gemrc"))) do
      subjects(side, side(gems: { "toy" => "1.0" }), **bench) do |list|
        assert_equal %W[2.0\n 1.0\n], list.map { |each| run_subject(each) }
        assert_equal @root, list.last.dir
      end
      # A gem that isn't installed. `gem install` takes the package from the working directory.
      package_gem("toy", "4.0", @root)
      subjects(side(gems: { "toy" => "4.0" }), **bench) { |list| assert_equal "4.0\n", run_subject(list.first) }
      versions = Dir.children(File.join(@root, "gems/gems")).map { |name| name.delete_prefix("toy-") }
      assert_equal %w[1.0 2.0], versions.sort
      subjects(side(gems: { "toy" => "1.0" }), dir: @root, environment: with_gems,
               command: [RUBY, "-e", "require 'toy'; puts TOY"]) do |list|
        assert_equal "1.0\n", run_command(list.first)
      end
      assert_match(/\Atoy: gem install toy -v 99 failed: .* \(log: /,
                   failure(Pitwall::Workspace::BuildFailed, side(name: "toy", gems: { "toy" => "99" }), **bench))
    end
  end
end
