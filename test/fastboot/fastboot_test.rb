# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fastboot_program"

# Programs with `require "pitwall/fastboot"` do what they do without it.
class FastbootTest < Minitest::Test
  include CommandLine

  LIB = File.join(Checkout::ROOT, "lib")
  STATS = "at_exit { $stderr.puts 'stats ' + Pitwall::Fastboot.stats.inspect }"

  def in_cache = { "PITWALL_BOOT_CACHE" => file("cache") }

  # @return the output with the accelerator
  def boot(*arguments, env: {}, options: [])
    capture({ "PITWALL_BOOT_CACHE" => file("cache"), **env }, RUBY, *options, "-I#{LIB}", "-rpitwall/fastboot",
            "-e", STATS, *arguments)
  end

  def plain(*arguments, options: []) = capture({}, RUBY, *options, "-I#{LIB}", "-e", "", *arguments)

  def stats(result) = eval(result.err[/^stats (\{.*\})$/, 1])

  def without_stats(text) = text.lines.grep_v(/^stats /)

  # What a file can tell about how it was loaded.
  WITNESS = <<~'RUBY'
    # encoding: iso-8859-1
    class Witness
      def call(a, *b, k: 1, &block) = [a, b, k, __method__, block&.call]
    end
    p __FILE__, __dir__, __LINE__, __ENCODING__, "\xe4".encoding, "text".frozen?, caller(0)
    p Witness.new.call(1, 2, k: 3) { :block }, Witness.instance_method(:call).source_location
    p RubyVM::InstructionSequence.of(Witness.instance_method(:call)).path
    begin
      nil.foo
    rescue => error
      puts error.full_message(highlight: false)
    end
    require_relative "part/second"
    require "third"
    autoload :Fourth, "#{__dir__}/part/fourth"
    p Fourth, require("third"), $LOADED_FEATURES.grep(/witness|second|third|fourth/)
  RUBY

  def write_witness
    Dir.mkdir(file("part"))
    Dir.mkdir(file("path"))
    File.write(file("witness.rb"), WITNESS)
    File.write(file("part/second.rb"), "p caller(0), __dir__")
    File.write(file("path/third.rb"), "p caller(0)\nwarn 'told', uplevel: 0")
    File.write(file("part/fourth.rb"), "Fourth = caller(0)")
  end

  def test_programs_see_no_difference
    write_witness
    program = ["-e", "$LOAD_PATH.unshift('#{file("path")}'); require '#{file("witness")}'"]
    [[], ["--enable=frozen-string-literal"], ["-W:no-experimental"], ["--disable-gems"]].each do |options|
      expected = plain(*program, options: options)
      assert_predicate expected.status, :success?, expected.err
      results = Array.new(2) { boot(*program, options: options) }
      results.each do |result|
        assert_equal frames(expected.out), frames(result.out)
        assert_equal expected.err.lines, without_stats(result.err)
      end
      counts = results.map { |result| stats(result) }
      # Without gems the compiler's options are those of the first round. Some Rubies load more files of their own.
      assert_operator counts[0]["stored"], :>=, 4, counts.inspect unless options == ["--disable-gems"]
      assert_operator counts[1].values_at("hit", "hit_by_content").compact.sum, :>=, 4, counts.inspect
      assert_nil counts[1]["missing"], counts.inspect
      assert_operator counts[1]["found"], :>=, 1
    end
  end

  # Without the frames of `require` itself: RubyGems has two, the accelerator one with its caller's line.
  def frames(text)
    text.gsub(/(?:, )?"[^"]*in [`'](?:Kernel#)?require'"/, "").gsub(/^\s+from .*in [`'](?:Kernel#)?require'\n/, "")
        .gsub(/-e:[12]:/, "-e:N:")
  end

  def test_warnings_coverage_and_kept_source
    File.write(file("a.rb"), "p({ a: 1, a: 2 }.size)")
    File.write(file("b.rb"), "x = 1\n")
    2.times do
      result = boot("-e", "load 'a.rb'; load './b.rb'")
      assert_equal 1, result.err.scan(/is duplicated and overwritten/).size, result.err
    end
    result = boot("-e", "$VERBOSE = true; load './b.rb'")
    assert_match(/assigned but unused variable/, result.err)
    assert_equal 1, stats(result)["verbose"]
    result = boot("-e", "require 'coverage'; Coverage.start; load '#{file("b.rb")}'; p Coverage.result.values")
    assert_match(/\[\[1\]\]|\{:?lines/, result.out)
    assert_equal 1, stats(result)["coverage"]
    result = boot("-e", "SCRIPT_LINES__ = {}; load '#{file("b.rb")}'; p SCRIPT_LINES__.size")
    assert_equal ["1\n", 1], [result.out, stats(result)["script_lines"]]
  end

  # The same random requires, in folders that appear and change, with it and without.
  SEARCHES = <<~'RUBY'
    random = Random.new(SEED)
    folders = %w[a b c d].map { |name| File.join(Dir.pwd, name) }
    names = %w[one two sub/one sub/two one.x sub/deep/one]
    120.times do |i|
      folder = folders.sample(random: random)
      name = names.sample(random: random)
      case random.rand(7)
      when 0
        path = "#{folder}/#{name}.rb"
        path.split("/")[1..-2].inject("") do |above, part|
          "#{above}/#{part}".tap { |dir| Dir.mkdir(dir) unless Dir.exist?(dir) }
        end
        File.write(path, "puts 'loads ' + __FILE__.delete_prefix(Dir.pwd)")
      when 1 then $LOAD_PATH.unshift(folder)
      when 2 then $LOAD_PATH.delete(folder)
      when 3 then $LOADED_FEATURES.delete_if { |path| path.start_with?(Dir.pwd) && random.rand(2).zero? }
      when 4 then File.unlink("#{folder}/#{name}.rb") if File.exist?("#{folder}/#{name}.rb")
      else
        begin
          puts "#{name} #{require(random.rand(3).zero? ? "#{name}.rb" : name)}"
        rescue LoadError => error
          puts "#{error.message} #{error.path}"
        end
      end
    end
  RUBY

  def test_searches_find_what_ruby_finds
    found = 0
    3.times do |seed|
      program = ["-e", "SEED = #{seed}; Dir.mkdir(ARGV[0]); Dir.chdir(ARGV[0])", "-e", SEARCHES]
      expected = plain(*program, "plain#{seed}")
      result = boot(*program, "fast#{seed}")
      assert_equal expected.out, result.out.gsub("/fast#{seed}", "/plain#{seed}")
      found += stats(result)["found"].to_i
    end
    assert_operator found, :>, 5
  end

  # Bundler.setup puts Ruby's own `require` back. A library may also replace it and undo that.
  def test_require_is_found_again_after_others_replaced_it
    bundler = "module Kernel; private; alias_method :require, :gem_original_require; private :require; end"
    patch = "module Kernel; alias_method :old, :require; def require(it) = old(it); alias_method :require, :old; end"
    File.write(file("a.rb"), "1")
    File.write(file("third.rb"), "puts :third")
    [bundler, patch].each do |change|
      result = boot("-e", "require 'rbconfig' # loads nothing", "-e", change,
                    "-e", "load './a.rb'; $LOAD_PATH.unshift(Dir.pwd); require 'third'; load './a.rb'")
      assert_equal ["third\n", 1], [result.out, stats(result)["found"]], result.err
    end
  end

  # Bootsnap prepends a module that has this method. This program defines the method itself, and removes it in the end.
  # Then the pack answers again.
  def test_a_hook_that_the_program_defines_later_is_asked_first
    File.write(file("hook.rb"), <<~'RUBY')
      def (RubyVM::InstructionSequence).load_iseq(path)
        compile(File.read(path).sub("of the file", "CHANGED"), path, path) if path.end_with?("/third.rb")
      end
    RUBY
    File.write(file("third.rb"), "puts 'of the file'")
    gone = "class << RubyVM::InstructionSequence; remove_method :load_iseq; end"
    2.times do
      result = boot("-e", "2.times { load './hook.rb'; load './third.rb' }", "-e", gone, "-e", "load './third.rb'")
      assert_equal "CHANGED\nCHANGED\nof the file\n", result.out, result.err
      assert_empty stats(result)["reasons"].grep(/took/)
    end
    assert_match(/hook.rb took /, stats(boot("-e", "load './hook.rb'; load './third.rb'"))["reasons"].join)
  end

  # A file appears in the earlier folder just after this was listed, perhaps at the same tick of the clock.
  # Sometimes the folder itself is new, or it is replaced by another one, or by a link.
  LISTINGS = <<~'RUBY'
    index = Pitwall::Fastboot.instance_variable_get(:@index)
    index.install # is in place: it must not stand before itself
    first, second, spare = %w[a b spare].map { |name| "#{Dir.pwd}/#{name}" }
    $LOAD_PATH.unshift(first, second)
    Dir.mkdir(second)
    200.times do |i|
      File.write("#{second}/other#{i}.rb", "")
      File.write("#{second}/late#{i}.rb", "puts 'b#{i}'")
      Dir.mkdir(first) if i == 1
      require "other#{i}" # lists both
      case i % 50
      when 20
        File.rename(first, "#{spare}#{i}")
        Dir.mkdir(first)
      when 30
        File.rename(first, "#{spare}#{i}")
        File.symlink("#{spare}#{i}", first)
      end
      File.write("#{first}/late#{i}.rb", "puts 'a#{i}'") unless i.zero? || i % 10 == 9
      require "late#{i}"
    end
  RUBY

  def test_files_appear_while_it_runs
    result = boot("-e", LISTINGS)
    expected = Array.new(200) { |i| i.zero? || i % 10 == 9 ? "b#{i}" : "a#{i}" }
    assert_equal expected, result.out.lines(chomp: true), result.err
    assert_operator stats(result)["found"], :>=, 100
  end

  BEFORE_BUNDLER = <<~'RUBY'
    require "pitwall/fastboot"
    p Gem.loaded_specs.key?("pitwall-core"), $LOAD_PATH.grep(/pitwall-core/)
    require "bundler/setup"
    p Gem.loaded_specs["pitwall-core"].version.to_s, $LOAD_PATH.grep(/pitwall-core/).size
    require "pitwall/fastboot"
    require "third"
    folder = $LOAD_PATH.grep(/third/).first
    begin
      require "third/late"
    rescue LoadError => error
      p error.message, error.path
    end
    Dir.mkdir("#{folder}/third")
    File.write("#{folder}/third/late.rb", "p :late")
    require "third/late"
    File.unlink("#{folder}/third/late.rb")
    Dir.rmdir("#{folder}/third")
    p Pitwall::Fastboot.stats["found"].positive?
  RUBY

  # The newest version is loaded. Bundler activates the one in the Gemfile.
  def test_before_bundler
    write_files("boot.rb" => BEFORE_BUNDLER, "Gemfile" => "gem 'pitwall-core', '9.1'\ngem 'third'\n")
    [["pitwall-core", "9.1", LIB], ["pitwall-core", "9.2", LIB], ["third", "1.0", nil]].each do |name, version, lib|
      write_files("gems/specifications/#{name}-#{version}.gemspec" => <<~RUBY, "gems/gems/#{name}-#{version}/x" => "")
        Gem::Specification.new { |s| s.name = "#{name}"; s.version = "#{version}"; s.summary = "x"; s.authors = ["x"] }
      RUBY
      folder = file("gems/gems/#{name}-#{version}/lib")
      lib ? File.symlink(lib, folder) : write_files("gems/gems/#{name}-#{version}/lib/#{name}.rb" => "")
    end
    env = { "GEM_PATH" => [file("gems"), *Gem.path].join(":"), "BUNDLE_GEMFILE" => file("Gemfile"), "RUBYLIB" => nil,
            "RUBYOPT" => nil, "PITWALL_BOOT_CACHE" => file("cache"), "BUNDLE_PATH" => nil,
            "BUNDLE_APP_CONFIG" => file("x"), "GEM_HOME" => file("gems") }
    2.times do
      result = capture(env, RUBY, "boot.rb")
      missing = ['"cannot load such file -- third/late"', '"third/late"', ":late"]
      assert_equal ["false", "[]", '"9.1"', "1", *missing, "true"], result.out.lines(chomp: true), result.err
    end
  end

  DECIDED = <<~'RUBY'
    gem "base64"
    require "pitwall/fastboot"
    require "bundler/setup"
    require "shellwords" # from now on RubyGems may warn
    %w[racc/info csv base64].each do |name|
      before = Pitwall::Fastboot.stats["rubygems_decides"].to_i
      begin
        require name
      rescue LoadError
        warn "no #{name}"
      end
      p Pitwall::Fastboot.stats["rubygems_decides"].to_i - before
    end
  RUBY

  # Before Ruby 3.3 RubyGems warns of no gem.
  if RUBY_VERSION >= "3.3"
    # RubyGems warns of gems that Ruby no longer has, but not of those in the bundle.
    def test_gems_that_ruby_no_longer_has
      write_files("boot.rb" => DECIDED, "Gemfile" => "gem 'racc'\n")
      env = { "BUNDLE_GEMFILE" => file("Gemfile"), "PITWALL_BOOT_CACHE" => file("cache"), "BUNDLE_PATH" => nil,
              "BUNDLE_APP_CONFIG" => file("x") }
      # The first one writes the lockfile.
      plain, result = ["off", nil].map do |on|
        capture({ **env, "PITWALL_FASTBOOT" => on }, RUBY, "-I#{LIB}", "boot.rb")
      end
      assert_equal %w[0 1 1], result.out.lines(chomp: true), result.err
      assert_equal plain.err, result.err, "what it warns of"
    end
  end

  # Each library of Ruby, as Bundler leaves `require`: what it returns or raises, the second time too.
  LIBRARIES = <<~'RUBY'
    require "pitwall/fastboot" if FAST
    require "bundler/setup"
    roots = RbConfig::CONFIG.values_at("rubylibdir", "rubyarchdir")
    names = roots.flat_map { |root| Dir["{*,*/*}.{rb,so}", base: root] }.map { |name| name[/.*(?=\.)/] }
    names.reject! { |name| name.match?(%r{\A(?:bundler|rubygems|irb|debug|rdoc|prism|ruby_vm|rbs)/}) }
    names -= %w[un mkmf debug irb bundled_gems]
    names += %w[prism/prism enumerator thread rational complex fiber stringio.so stringio.rb none none/x none.so]
    $stderr = $stdout
    (names.uniq.sort * 2).each do |name|
      result = begin
        require name
      rescue LoadError, StandardError => error
        [error.class, error.message, error.respond_to?(:path) && error.path]
      end
      puts "#{name}: #{result.inspect}"
    end
    puts $LOADED_FEATURES.grep_v(/pitwall/).sort
  RUBY

  def test_every_library
    write_files("Gemfile" => "")
    env = { "BUNDLE_GEMFILE" => file("Gemfile"), "RUBYLIB" => nil, "RUBYOPT" => nil, "BUNDLE_APP_CONFIG" => file("x"),
            "PITWALL_BOOT_CACHE" => file("cache") }
    _writes_the_lockfile, expected, *results = [false, false, true, true].map do |fast|
      capture(env, RUBY, "-W:no-deprecated", "-I#{LIB}", "-e", "FAST = #{fast}", "-e", LIBRARIES).out.lines
    end
    assert_operator expected.size, :>, 300
    results.each { |result| assert_equal [[], []], [result - expected, expected - result] }
  end

  # What fails while code is stored, and warnings of other threads.
  def test_storing_code
    refuse = "RubyVM::InstructionSequence.prepend(Module.new { def to_binary(*) = raise(ScriptError, 255.chr) })"
    noise = "class << RubyVM::InstructionSequence; prepend(Module.new { def load_iseq(path) = " \
            "super.tap { Thread.new { warn('noise', category: nil) }.join } }); end"
    busy = "load './a.rb'; lock = File.open('cache/lock', 'w'); lock.flock(File::LOCK_EX); " \
           "Pitwall::Fastboot.flush; lock.close"
    File.write(file("a.rb"), "puts 1")
    Dir.mkdir(file("cache"), 0o755)
    result = boot("-e", refuse, "-e", "load './a.rb'")
    assert_equal ["1\n", 1], [result.out, stats(result)["undumpable"]], result.err
    assert_match(/a\.rb: ScriptError: /, stats(result)["reasons"].join)
    result = boot("-e", noise, "-e", "load './a.rb'", env: { "PITWALL_BOOT_CACHE" => file("other") })
    assert_equal [1, nil], stats(result).values_at("stored", "warned"), result.err
    result = boot("-e", busy)
    assert_equal ["1\n", 1], [result.out, stats(result)["stored"]], result.err
    assert_equal 1, stats(boot("-e", "load './a.rb'")).values_at("hit", "hit_by_content").compact.sum
  end

  def test_no_folder_to_write_in_is_no_error
    ["/dev/null/x", "", "~no-such-user/x"].each do |folder|
      env = { "PITWALL_BOOT_CACHE" => folder, "HOME" => nil, "XDG_CACHE_HOME" => nil }
      result = boot("-e", "load './a.rb'", env: env)
      assert_match(/cannot load such file/, result.err) # what the program itself says
      refute_empty stats(result)["reasons"]
      refute_match(/pitwall.*Error/, result.err)
    end
    result = boot("-e", "1", env: { "PITWALL_FASTBOOT" => "off" })
    assert_equal({ "reasons" => ["switched off by PITWALL_FASTBOOT=off"] }, stats(result))
  end

  # A limit on files' sizes acts as a full disk does.
  def test_a_full_disk
    File.write(file("a.rb"), "A = '#{"text" * 5000}'; p A.size")
    full = "trap(:XFSZ, 'IGNORE'); Process.setrlimit(:FSIZE, 8192)"
    2.times do
      result = boot("-r#{FastbootProgram::KILLING}", "-e", full, "-e", "load './a.rb'", env: { "KILL_AT" => "never" })
      assert_equal ["20000\n", true], [result.out, result.status.success?]
    end
    counts = Array.new(2) { stats(boot("-e", "load '#{file("a.rb")}'")) }
    assert_equal [1, 1], [counts[0]["stored"], counts[1].values_at("hit", "hit_by_content").compact.sum]
  end

  # A compile cache as bootsnap: it does not ask others. Without a folder its answer is nil.
  OTHER_CACHE = <<~'RUBY'
    module Bootsnap; module CompileCache; end; end
    module Bootsnap::CompileCache::ISeq
      singleton_class.attr_accessor :cache_dir
      module Mixin
        def load_iseq(path)
          return unless Bootsnap::CompileCache::ISeq.cache_dir && path.end_with?("/a.rb")

          source = File.read(path) + "; puts :other"
          RubyVM::InstructionSequence.compile(source, path, path)
        end
      end
      RubyVM::InstructionSequence.singleton_class.prepend(Mixin)
    end
  RUBY
  USE_IT = "Bootsnap::CompileCache::ISeq.cache_dir = 'x'"

  def test_another_compile_cache_wins
    File.write(file("other.rb"), OTHER_CACHE)
    File.write(file("a.rb"), "puts 'a'")
    load = "load './a.rb'"
    result = boot("-r./other.rb", "-e", USE_IT, "-e", load)
    assert_equal ["a\nother\n", 1, nil], [result.out, *stats(result).values_at("from_others", "hit")]
    assert_match(/other\.rb took RubyVM::InstructionSequence\.load_iseq/, stats(result)["reasons"].last)
    result = capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-r./other.rb", "-e", USE_IT,
                     "-e", "require 'pitwall/fastboot'; #{load}; p Pitwall::Fastboot.stats['reasons']")
    assert_match(/\Aa\nother\n.*has RubyVM::InstructionSequence\.load_iseq/, result.out)
  end

  # It may be loaded before or after, be used from some time on, or be followed by a cache that asks others.
  def test_another_compile_cache_that_is_not_used
    File.write(file("other.rb"), OTHER_CACHE)
    File.write(file("a.rb"), "puts 'a'")
    third = "RubyVM::InstructionSequence.singleton_class.prepend(Module.new { def load_iseq(path) = super })"
    loads = ["-e", "load './a.rb'", "-e", third, "-e", "load './a.rb'"]
    other = ["-r./other.rb"]
    [[other, []], [[], other]].each do |before, after|
      results = Array.new(3) { boot(*after, *loads, options: before) }
      assert_equal ["a\na\n"] * 3, results.map(&:out), results.map(&:err)
      assert_nil stats(results.last)["from_others"], before
      assert_empty stats(boot(*after, "-e", "load './a.rb'", options: before))["reasons"], before
      assert_operator stats(results.last).values_at("hit", "hit_by_content").compact.sum, :>=, 2, before
      result = boot(*after, *loads, "-e", "#{USE_IT}; load './a.rb'", options: before)
      assert_equal ["a\na\na\nother\n", 1], [result.out, stats(result)["from_others"]], result.err
    end
  end

  def test_options_of_bootsnap_are_understood
    program = "require 'pitwall/fastboot/setup'; p Pitwall::Fastboot.setup(cache_dir: 'x', development_mode: true, " \
              "load_path_cache: false, compile_cache_iseq: true, compile_cache_yaml: true, ignore_directories: [])"
    File.write(file("a.rb"), "fork { load '#{file("b.rb")}' }; Process.wait; load '#{file("b.rb")}'")
    File.write(file("b.rb"), "1")
    result = capture({}, RUBY, "-I#{LIB}", "-e", program, "-e", "load './a.rb'; p Pitwall::Fastboot.stats")
    assert_match(/\Atrue\n/, result.out)
    assert_equal 1, Dir[file("x/pitwall/*.pack")].size
    result = capture({}, RUBY, "-I#{LIB}", "-rpitwall/fastboot/setup", "-e", "Pitwall::Fastboot.setup(nonsense: 1)")
    assert_match(/unknown option nonsense/, result.err)
  end

  # With another Ruby of the same description, for example.
  def test_code_that_ruby_refuses_is_replaced
    File.write(file("a.rb"), "A = 1")
    refuse = "if ENV['REFUSE'] then def (RubyVM::InstructionSequence).load_from_binary(*) = raise('not this'); end; "
    counts = [{}, { "REFUSE" => "1" }, {}].map { |env| stats(boot("-e", "#{refuse}load './a.rb'", env: env)) }
    assert_equal [[nil, 1], [1, 1], [nil, nil]], counts.map { |one| one.values_at("refused", "stored") }
    assert_equal 1, counts.last.values_at("hit", "hit_by_content").compact.sum, counts.last
  end

  # Nobody keeps root from writing, so another user runs the command.
  def test_a_build_that_may_not_write
    FileUtils.mkdir_p(file("cache"))
    File.chmod(0o755, @dir)
    File.chmod(0o555, file("cache"))
    build = ["-e", "#{OTHER_USER}exec(*ARGV)", RUBY, *START, "boot", "cache", "build", "--", RUBY, "-e", "p 1"]
    result = capture({ **in_cache, "PITWALL_DEBUG" => nil }, RbConfig.ruby, "--disable-gems", *build)
    assert_equal ["", "pitwall: cannot write in #{file("cache")}: Permission denied\n", 2],
                 [result.out, result.err, result.status.exitstatus]
  ensure
    File.chmod(0o755, file("cache"))
  end

  # The program starts the accelerator itself, as the documents say. One boot of two has it on.
  def verify_boots_of_a_program_with_it(env)
    ["require 'pitwall/fastboot'", "require 'pitwall/fastboot/setup'; Pitwall::Fastboot.setup"].each do |start|
      File.write(file("c.rb"), "#{start}; warn Pitwall::Fastboot.on?; require_relative 'b'")
      result = pitwall("boot", "cache", "verify", "--boot", "--", RUBY, "-I#{LIB}", "c.rb", env: env)
      assert_match(/^both boots have the same/, result.out)
      assert_equal "false\ntrue\n", result.err
    end
  end

  def verify_names_what_is_damaged(env)
    pack = Dir.glob(file("cache/*.pack")).first
    File.binwrite(pack, File.binread(pack).sub("called", "cabled"))
    result = pitwall("boot", "cache", "verify", env: { **env, "PITWALL_DEBUG" => nil })
    assert_equal 5, result.status.exitstatus
    assert_match(/^damaged: .*\/b\.rb$/, result.out)
    assert_match(/\Apitwall: .*: 1 damaged: pitwall boot cache build -- CMD stores them anew\n\z/, result.err)
  end

  def test_a_daemon_goes_on_as_the_program
    write_files("a.rb" => "A = 1", "b.rb" => "B = 2")
    program = "load './a.rb'; Process.daemon(true); File.write('pid', Process.pid); load './b.rb'"
    boot("-e", program)
    600.times { ended_daemon? ? break : sleep(0.1) }
    facts = JSON.parse(pitwall("boot", "cache", "stats", "--format", "json", env: in_cache).out)
    assert_operator facts.dig("pack", "files"), :>=, 2
    assert_equal 2, facts["last_boot"]["stored"]
    result = boot("-e", "load './a.rb'; load './b.rb'")
    assert_equal 2, stats(result).values_at("hit", "hit_by_content").compact.sum
  end

  def ended_daemon?
    pid = File.read(file("pid")).to_i if File.file?(file("pid"))
    pid&.positive? && !File.exist?("/proc/#{pid}")
  end

  # Another process writes the pack just then.
  def test_build_waits_for_the_lock
    write_files("a.rb" => "A = 1", "b.rb" => "B = 1")
    env = in_cache
    pitwall("boot", "cache", "build", "--", RUBY, "-e", "load './a.rb'", env: env)
    busy = "lock = File.open('cache/lock'); lock.flock(File::LOCK_EX); " \
           "at_exit { fork { sleep 1; exit! }; lock.close }; load './b.rb'"
    result = pitwall("boot", "cache", "build", "--frozen", "--", RUBY, "-e", busy, env: env)
    assert_match(/: 2 records, .*, frozen$/, result.out, result.err)
    assert_match(/ 2 current$/, pitwall("boot", "cache", "verify", env: env).out)
  end

  # Ruby splits RUBYOPT at spaces.
  def test_build_and_verify_in_a_folder_with_a_space
    write_files("a.rb" => "A = 1")
    FileUtils.mkdir_p(file("with space/pitwall"))
    FileUtils.cp_r(File.join(LIB, "pitwall/."), file("with space/pitwall"))
    ["build", "verify --boot"].each do |action|
      result = pitwall("boot", "cache", *action.split, "--", RUBY, "-e", "load './a.rb'",
                       env: { **in_cache, "TMPDIR" => @dir, "TEST_LIB" => file("with space") })
      assert_match(/ 1 records|^both boots have the same/, result.out, result.err)
    end
    assert_equal 2, Dir.glob(file("pitwall-*/*/pitwall_boot_*.rb")).size
  end

  def test_an_empty_note_of_the_last_boot
    write_files("a.rb" => "A = 1", "cache/last-boot" => "")
    result = boot("-e", "load './a.rb'")
    assert_equal 1, stats(result)["stored"], result.err
    assert_match(/^ +1  files whose code was compiled/, pitwall("boot", "cache", "stats", env: in_cache).out)
    write_files("cache/last-boot" => "")
    assert_match(/^no boot with it has ended yet$/, pitwall("boot", "cache", "stats", env: in_cache).out)
  end

  # Anybody may have written into the file what the terminal would obey.
  def test_a_hostile_note_of_the_last_boot
    FileUtils.mkdir_p(file("cache"))
    lines = ["command=\e[2Jx\xFF", "hit=9e99", "missing=-4", "stored=\e[31m7", "odd", "new=1", "reason=\e]0;t\a"]
    File.binwrite(file("cache/last-boot"), lines.join("\n"))
    env = in_cache
    found = JSON.parse(pitwall("boot", "cache", "stats", "--format", "json", env: env).out).fetch("last_boot")
    assert_equal({ "hit" => 9, "missing" => 0, "stored" => 0, "odd" => 0 }, found.except("command", "reason"))
    text = pitwall("boot", "cache", "stats", env: env).out
    refute_match(/[\e\a]/, text)
    assert_match(/^ +9  files whose code came from the pack$/, text)
  end

  def test_the_command
    env = in_cache
    File.write(file("a.rb"), "require_relative 'b'; puts B.new.call")
    File.write(file("b.rb"), "class B; def call = :called; end")
    result = pitwall("boot", "cache", "build", "--", RUBY, "a.rb", env: env)
    assert_match(/\Acalled\n.*\.pack: \d+ records, \d+ bytes\n\z/, result.out)
    result = pitwall("boot", "cache", "stats", "--format", "json", env: env)
    facts = JSON.parse(result.out)
    assert_equal ["pitwall/boot-cache-1", 1], [facts["schema"], facts["last_boot"]["stored"]]
    result = pitwall("boot", "cache", "verify", "--boot", "--", RUBY, "a.rb", env: env)
    assert_match(/both boots have the same \d+ features/, result.out, result.err)
    verify_boots_of_a_program_with_it(env)
    File.write(file("b.rb"), "class B; def call = :other; end")
    assert_match(/ 1 changed/, pitwall("boot", "cache", "verify", env: env).out)
    verify_names_what_is_damaged(env)
    assert_match(/^deleted|: deleted boot/, pitwall("boot", "cache", "clear", env: env).out)
  end
end
