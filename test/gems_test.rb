# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/command_line"

# The two gems as users get them: installed, away from the checkout.
class GemsTest < Minitest::Test
  include CommandLine

  NAMES = %w[pitwall-core pitwall].freeze

  def files(name) = Gem::Specification.load(File.join(Checkout::ROOT, "#{name}.gemspec")).files

  def test_each_file_is_in_one_gem
    core, command = NAMES.map { |name| files(name) }
    assert_equal %w[LICENSE.txt], core & command
    all = Dir.chdir(Checkout::ROOT) { Dir["lib/**/*.rb", "exe/*", "ext/**/*.{c,h,rb}"] }
    assert_empty all - core - command
    assert_empty((core + command).reject { |file| File.file?(File.join(Checkout::ROOT, file)) })
  end

  def test_core_is_what_the_target_loads_and_depends_on_nothing
    core = files("pitwall-core")
    assert_includes core, "lib/pitwall/collect/session.rb"
    refute_includes core, "lib/pitwall/launch.rb"
    assert_empty core.grep(%r{\Alib/pitwall/(cli|record|analyse|show|doctor|bench|launch)/})
    assert_empty Gem::Specification.load(File.join(Checkout::ROOT, "pitwall-core.gemspec")).dependencies
  end

  # What `gem build` and Bundler need of a source tree to evaluate the gemspec of core.
  GEMSPEC_NEEDS = ["pitwall-core.gemspec", "script/bench_child.rb", "lib/pitwall/version.rb",
                   "lib/pitwall/bench_child"].freeze

  # A source tree of its own, without an assembled file.
  def source_tree
    root = file("source")
    GEMSPEC_NEEDS.each do |path|
      FileUtils.mkdir_p(File.dirname(File.join(root, path)))
      FileUtils.cp_r(File.join(Checkout::ROOT, path), File.join(root, path))
    end
    FileUtils.rm_f(BenchChild.path(root))
    root
  end

  # Bundler evaluates the gemspec of a git source and of a path source.
  def test_evaluating_the_gemspec_assembles_the_process_of_bench
    root = source_tree
    evaluate = [RUBY, "-e", 'puts Gem::Specification.load("pitwall-core.gemspec").files']
    assert_includes run!({}, *evaluate, dir: root).out.lines(chomp: true), "lib/pitwall/bench_child/assembled.rb"
    assert_equal File.binread(BenchChild.path(Checkout::ROOT)), File.binread(BenchChild.path(root))

    File.write(File.join(root, "lib/pitwall/bench_child/stub.rb"), "# newer\n", mode: "a")
    run!({}, *evaluate, dir: root)
    assert_includes File.read(BenchChild.path(root)), "\n# newer\n"
  end

  # Root can write everywhere, so the test itself raises what a read-only folder raises.
  READ_ONLY = "def BenchChild.write(*) = raise(Errno::EROFS)"

  def test_the_gemspec_can_be_evaluated_where_nothing_can_be_written
    root = source_tree
    load = 'spec = Gem::Specification.load("pitwall-core.gemspec")'
    evaluate = [RUBY, "-r./script/bench_child", "-e", READ_ONLY, "-e", load]
    result = run!({}, *evaluate, "-e", "puts spec.name", dir: root)
    assert_equal ["pitwall-core\n", ""], [result.out, result.err]
    # A gem is not built without the file.
    result = capture({}, *evaluate, "-rrubygems/package", "-e", "Gem::Package.build(spec)", dir: root)
    refute_predicate result.status, :success?
    assert_match(%r{"lib/pitwall/bench_child/assembled\.rb".* are not files}, result.err)
  end

  # Compiles the extension once more, as `gem install` does.
  def test_the_installed_gems_work
    skip "peer absent: ruby's headers" unless File.file?(File.join(RbConfig::CONFIG["rubyhdrdir"].to_s, "ruby.h"))
    gem_home = file("gem home") # a space, as in some people's home folders
    environment = { "GEM_HOME" => gem_home, "GEM_PATH" => [gem_home, *Gem.path].join(File::PATH_SEPARATOR) }
    NAMES.each do |name|
      built = file("#{name}.gem")
      run!(environment, RUBY, "-S", "gem", "build", "--strict", "-o", built, "#{name}.gemspec", dir: Checkout::ROOT)
      run!(environment, RUBY, "-S", "gem", "install", "--local", "--no-document", "--ignore-dependencies",
           "--no-user-install", "--bindir", file("bin"), built)
    end
    installed_files = Dir[file("gem home/**/*")].sort
    program = "#{CommandLine.busy(0.2)} puts :done"
    result = run!(environment, RUBY, file("bin/pitwall"), "profile", "--format", "json", "--out", "-",
                  "--", RUBY, "-e", program)
    assert_match(/\Adone\n\{/, result.out)
    assert_equal "pitwall/report-1", JSON.parse(result.out.delete_prefix("done\n"))["schema"]
    # The launcher comes with the extension.
    result = run!(environment, RUBY, file("bin/pitwall"), "bench", "--runs", "1", "--warmup", "1",
                  "--format", "json", "-e", "1 + 1")
    assert_equal "pitwall/bench-1", JSON.parse(result.out)["schema"]
    # As a program's own library, with nothing but core.
    profile = "Pitwall.profile(record: 'x.pit') { 1 }; exit File.size?('x.pit') ? 0 : 1"
    run!(environment, RUBY, "-e", "gem 'pitwall-core'; require 'pitwall'; #{profile}")
    ips = "gem 'pitwall-core'; require 'pitwall/ips'; " \
          "Benchmark.ips(time: 0.01, warmup: 0) { |x| x.report('one') { 1 } }"
    assert_match(/^one +\S/, run!(environment, RUBY, "-e", ips).out)
    # The folder of an installed gem may be read-only: nothing writes to it.
    assert_equal File.binread(BenchChild.path(Checkout::ROOT)), File.binread(BenchChild.path(installed("pitwall-core")))
    assert_equal installed_files, Dir[file("gem home/**/*")].sort
  end

  def installed(name) = Dir[file("gem home/gems/#{name}-[0-9]*")].first

  def run!(environment, *command, dir: @dir)
    result = capture(environment, *command, dir: dir)
    assert result.status.success?, "#{command.join(" ")}\n#{result.out}#{result.err}"
    result
  end
end
