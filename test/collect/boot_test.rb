# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/drawn_view"
require_relative "../support/page_contents"
require_relative "../support/zone_file"
require "json"
require "pitwall/analyse"

# `pitwall boot` of generated files: what each takes, allocates and loads is known. A program does the same with Pitwall
# as without it.
class BootTest < Minitest::Test
  include CommandLine
  include PageContents

  FILES = {
    "main.rb" => <<~RUBY,
      $LOAD_PATH.unshift(__dir__)
      require "slow"
      require_relative "heavy"
      require_relative "heavy"
      require "./lib/relative"
      module Later; { Found: "found.rb", ByName: "by_name.rb" }.each { |name, file| autoload name, "\#{__dir__}/\#{file}" }; end
      Later::Found; Later.const_get(:ByName)
      load File.join(__dir__, "wrapped.rb"), true
      begin; require "no_such_file"; rescue LoadError; end
      begin; require_relative "raising"; rescue RuntimeError; end
      catch(:out) { require "throwing" }
      require "circle_a"
      Thread.new { require "threaded" }.join
      eval("1 + 1", TOPLEVEL_BINDING, "Gemfile", 1)
      Object.class_eval("def same_file = 1", __FILE__, __LINE__)
      require "etc"
      require "frameworks"
      require "next" # steps are looked for when a file is about to run
      Bundler.setup(:default, verbose: true) { IN_SETUP = 1 }
      Rails::Initializable::Initializer.new("shop.rates") { require "rates" }.run(1)
      pid = fork { require "forked" }
      Process.wait(pid)
      require "pitwall"
      Pitwall.booted
      require "late"
    RUBY
    "slow.rb" => "sleep 0.03\nrequire \"nested\"\n", "nested.rb" => "sleep 0.02\n",
    "heavy.rb" => "HEAVY = Array.new(5_000) { Object.new }\n", "lib/relative.rb" => "", "found.rb" => <<~RUBY,
      module Later; class Found; end; end
    RUBY
    "by_name.rb" => "module Later::ByName; end\n",
    "wrapped.rb" => "class InWrap; end\n", "raising.rb" => "raise 'no'\n", "throwing.rb" => "throw :out\n",
    "circle_a.rb" => "require 'circle_b'\n", "circle_b.rb" => "require 'circle_a'\n", "threaded.rb" => "",
    # As small as Bundler and Rails are to Pitwall.
    "frameworks.rb" => <<~RUBY, "rates.rb" => "sleep 0.01\n",
      module Bundler
        def self.setup(*groups, verbose: false) = [groups, verbose] == [[:default], true] ? yield : raise("arguments")
      end
      module Rails
        module Initializable
          Initializer = Struct.new(:name) do
            def initialize(name, &block) = (super(name); @block = block)
            def run(*) = @block.call
          end
        end
      end
    RUBY
    "forked.rb" => "", "next.rb" => "", "late.rb" => ""
  }.freeze

  QUIET = { "PITWALL_DEBUG" => nil }.freeze # errors without backtraces

  # Prints what a program can see of how it is loaded.
  BEHAVIOUR = <<~'RUBY'
    $LOAD_PATH.unshift(__dir__)
    def show(*values) = puts(values.map(&:inspect).join(" "))
    File.write(File.join(__dir__, "seen.rb"), "puts caller.inspect\nwarn 'up', uplevel: 1\n__dir__\n")
    File.write(File.join(__dir__, "bad_syntax.rb"), "def (\n")
    File.write(File.join(__dir__, "returns.rb"), "return\nputs 1\n")
    show(require("seen"), require("seen"), load("seen.rb"), load("seen.rb", true))
    show(Kernel.require("set"), Kernel.load(File.join(__dir__, "returns.rb")))
    %w[nowhere bad_syntax].each do |name|
      require name
    rescue ScriptError => error
      puts error.class, error.message, error.respond_to?(:path) && error.path.inspect, error.backtrace
    end
    show(Kernel.method(:require), Kernel.instance_method(:load), method(:require_relative).owner)
    show(Kernel.instance_method(:require).source_location, method(:eval).arity, binding.method(:eval).unbind)
    begin; require; rescue ArgumentError => error; puts error.message, error.backtrace; end
    begin; require 1; rescue TypeError => error; puts error.message, error.backtrace; end
    Named = Struct.new(:to_path)
    show(require(Named.new("returns")), $LOADED_FEATURES.last, private_methods.include?(:require))
    eval("puts caller.inspect; show(__FILE__, __LINE__)", binding, "other.rb", 7)
    Class.new.class_eval("show(__FILE__, self.class)", "klass.rb")
    show(catch(:found) { eval("throw :found, 3", nil, "thrown.rb") }, [1, 2].each { |n| break eval("n", binding, "b.rb") })
    require "yaml"
    File.write("#{__dir__}/x.yml", "a: [1]\n")
    show(YAML.load_file("x.yml"), YAML.load_file("x.yml", symbolize_names: true), YAML.unsafe_load_file("x.yml", freeze: true))
    begin; YAML.load_file("none.yml"); rescue SystemCallError => error; puts error.message; end
    Asked = Struct.new(:times) { def to_path = throw(:asked, self.times += 1) }
    show(catch(:asked) { YAML.load_file(Asked.new(0)) })
    File.write(File.join(__dir__, "fibre.rb"), "Fiber.yield 1\n")
    fiber = Fiber.new { require "fibre" }
    show(fiber.resume, require("returns"), fiber.resume)
    Thread.new { Thread.current.report_on_exception = false; File.write("#{__dir__}/dies.rb", "Thread.exit"); require "dies" }.join
    show(Thread.new { Thread.current.report_on_exception = false; require "dies" }.value)
    at_exit { show($!.class) }
    File.write(File.join(__dir__, "leaves.rb"), "exit 3")
    require "leaves"
  RUBY

  def setup
    super
    write_files(FILES)
  end

  def boot(*options, program: "main.rb", status: 0)
    out = file("boot.json")
    run = pitwall("boot", "--record", file("x.pit"), "--format", "json", "--out", out, *options, "--", "ruby",
                  "-I", File.join(Checkout::ROOT, "lib"), program)
    assert_equal status, run.status.exitstatus, run.err
    JSON.parse(File.read(out))
  end

  def of(report, name)
    report["features"].find { |row| File.basename(row["path"], ".rb") == name } || flunk("#{name} was not loaded")
  end

  # On Ruby 3.1 nobody reported the child's collections. The job that mends this made another one, which asked for the
  # job again: the child never went on.
  def test_a_fork_under_gc_stress
    File.write(file("stress.rb"), <<~'RUBY')
      GC.stress = true
      Process.wait(fork { 20.times { [1].map { |x| "#{x}" * 3 } }; GC.stress = false })
      GC.stress = false
      exit $?.exitstatus
    RUBY
    boot(program: "stress.rb")
  end

  def test_lines_that_ask_again
    File.write(file("loop.rb"), "require_relative \"main\"\n")
    main = "2.times { require 'json' }\n1_000.times { require 'json' }\nrequire './again'\nrequire 'pitwall'\n" \
           "Pitwall.booted\nrequire 'json'\n"
    File.write(file("main.rb"), main)
    File.write(file("again.rb"), "require './again'\nrequire_relative 'again'\n")
    boot(program: "loop.rb")
    rows = segments(file("x.pit")).flat_map(&:repeated_loads).select { |row| row.from.start_with?(@dir) }
    found = rows.map { |row| [File.basename(row.from), row.line, row.kind, row.name] }
    expected = [["main.rb", 1, "require", "json"], ["main.rb", 2, "require", "json"],
                ["again.rb", 1, "require", "./again"], ["again.rb", 2, "require_relative", "again"]]
    assert_equal expected, found
    assert_equal 2, rows.map(&:around).uniq.size
    redacted = pitwall("report", file("x.pit"), "--redact", "--format", "json").out
    refute_includes redacted, @dir
  end

  def test_the_tree
    report = boot("--fail-if", "features > 3", status: 1)
    slow, nested, heavy = %w[slow nested heavy].map { |name| of(report, name) }
    assert_equal report["features"].index(slow), nested["parent"]
    assert_operator nested["total_ns"], :>=, 20_000_000
    assert_operator slow["self_ns"], :>=, 30_000_000
    assert_operator slow["total_ns"], :>=, slow["self_ns"] + nested["total_ns"]
    assert_operator heavy["objects"], :>=, 5_000
    assert_operator heavy["bytes"], :>=, 5_000 * 40
    assert_operator nested["objects"], :<, 500
    assert_operator heavy["compile_ns"], :>, 0
    assert_equal [file("main.rb"), 2, file("slow.rb"), 2],
                 [File.expand_path(slow["from"], @dir), slow["line"], nested["from"], nested["line"]]
    kinds = { "slow" => "require", "heavy" => "require_relative", "relative" => "require", "found" => "autoload",
              "by_name" => "autoload", "wrapped" => "load", "Gemfile" => "eval", "etc" => "extension" }
    assert_equal(kinds, kinds.to_h { |name, _| [name, of(report, name.sub("etc", "etc.so"))["kind"]] })
    assert_equal %w[raised raised raised],
                 (%w[no_such_file raising throwing].map { |name| of(report, name)["ending"] })
    initializer = report["features"].find { |row| row["kind"] == "initializer" }
    assert_equal ["shop.rates", file("main.rb"), report["features"].index(initializer)],
                 [initializer["name"], File.expand_path(initializer["from"], @dir), of(report, "rates")["parent"]]
    assert_includes report["features"].map { |row| row["kind"] }, "bundler_setup"
    a, b = %w[circle_a circle_b].map { |name| of(report, name) }
    assert_equal [nil, report["features"].index(a), 1], [a["parent"], b["parent"], b["repeats"]]
    refute_equal a["thread"], of(report, "threaded")["thread"]
    assert_equal %w[booted 0], [report["ended_by"], report["lost"].to_s]
    assert_empty report["features"].map { |row| File.basename(row["path"]) }.grep(/forked|late|main/)
    assert_operator report["late"], :>=, 1
    assert_operator report["repeats"]["count"], :>=, 1
    assert_operator report["after"]["features"], :>=, report["before"]["features"] + 9
    whole = report["parts"].sum { |part| part["self_ns"] }
    assert_in_delta report["boot"]["wall_ns"], whole, report["boot"]["wall_ns"] * 0.01, "parts add up to the boot"
    views
  end

  # Of the same recording.
  def views
    text = pitwall("report", file("x.pit"), "--limit", "5").out
    assert_match(/from the process's start until its first request/, text)
    assert_match(/What to do/, text)
    assert_match(/^ *[\d.]+ ms.* slow\.rb/, text)
    by_objects = pitwall("report", file("x.pit"), "--heaviest", "objects", "--limit", "1").out
    assert_match(/heavy\.rb/, by_objects)
    assert_match(/^\| [\d.]+ ms \|.*slow/, pitwall("report", file("x.pit"), "--format", "markdown").out)
    compare
    assert_one_line 2, /has no file-system calls/, pitwall("report", file("x.pit"), "--heaviest", "calls", env: QUIET)
  end

  def compare
    File.write(file("slow.rb"), "require 'added'\n")
    File.write(file("added.rb"), "")
    boot = pitwall("boot", "--record", file("y.pit"), "--quiet", "--", "ruby", "-I", "#{Checkout::ROOT}/lib", "main.rb")
    assert_equal 0, boot.status.exitstatus, boot.err
    change = JSON.parse(pitwall("compare", file("x.pit"), file("y.pit"), "--format", "json").out)["boot"]
    sides = change["files"].reject { |row| row["side"] == "both" }.to_h { |row| [File.basename(row["path"]), row["side"]] }
    assert_equal({ "added.rb" => "new", "nested.rb" => "gone" }, sides)
    assert_equal 0, change["figures"]["features"].reduce(:-)
    text = pitwall("compare", file("x.pit"), file("y.pit")).out
    assert_match(/Loaded only by B: 1 file.*added\.rb.*Loaded only by A: 1 file.*nested\.rb.*Changed most.*slow/m, text)
    assert_match(/\*\*Loaded only by B\*\* \(1\)/, pitwall("compare", file("x.pit"), file("y.pit"), "--format", "markdown").out)
  end

  def test_behaviour_is_the_same
    File.write(file("behaviour.rb"), BEHAVIOUR)
    plain = run_ruby("behaviour.rb")
    recorded = pitwall("boot", "--record", file("x.pit"), "--quiet", "--", "ruby", "behaviour.rb")
    assert_equal 3, recorded.status.exitstatus
    assert_equal plain, [recorded.out, recorded.err]
  end

  def run_ruby(program)
    run = capture({}, "ruby", program)
    assert_equal 3, run.status.exitstatus, run.err
    [run.out, run.err]
  end

  # Name => source: the program boots within `outer`, which goes on to work.
  OUTLASTING = {
    "main.rb" => <<~RUBY,
      $LOAD_PATH.unshift(__dir__)
      Thread.new { require "hangs" }
      Thread.pass until defined?(HANGS)
      require "outer"
    RUBY
    "outer.rb" => <<~RUBY,
      require "inner"
      waits = Fiber.new { require "waits" }
      waits.resume
      require "between"
      waits.resume
      Fiber.new { require "in_fiber" }.resume
      require_relative "app/models/monitor"
      require "pitwall"
      Pitwall.booted
      WORK = Array.new(50_000) { Object.new }
      Thread.new { require "late" }.join
      100.times { require "inner" }
      sleep 0.3
      Process.wait(fork { require "in_child"; exec "/none" rescue require "next" })
    RUBY
    "hangs.rb" => "HANGS = 1\nsleep\n", "inner.rb" => "",
    "waits.rb" => "Fiber.yield\n", "between.rb" => "",
    "in_fiber.rb" => "", "in_child.rb" => "sleep 0.01\n", "app/models/monitor.rb" => "require 'asked'\n", "asked.rb" => ""
  }.freeze

  def test_loads_that_outlast_the_boot
    write_files(OUTLASTING)
    report = boot
    outer, hangs, asked = %w[outer hangs asked].map { |name| of(report, name) }
    assert_equal %w[unfinished unfinished], [outer["ending"], hangs["ending"]]
    assert_equal "booted", report["ended_by"]
    assert_operator outer["total_ns"], :<=, report["boot"]["wall_ns"]
    assert_operator outer["total_ns"], :>=, of(report, "inner")["total_ns"]
    assert_operator outer["total"]["objects"], :<, 50_000
    assert_operator report["parts"].sum { |part| part["self_ns"] }, :<=, report["boot"]["wall_ns"] * 1.01
    assert_operator report["repeats"]["count"], :<, 100, "those after the boot are not part of it"
    refute_equal outer["thread"], hangs["thread"]
    assert_equal file("app/models/monitor.rb"), asked["from"]
    at = report["features"].index(outer)
    assert_equal [at] * 3, (%w[waits between in_fiber].map { |name| of(report, name)["parent"] })
    own = segments(file("x.pit")).map { |one| one.boot_number("own_ns").positive? }
    assert_equal [true, false], [own.first, own.drop(1).any?], "the start; the child, also after its failed exec"
    assert_operator own.size, :>=, 2
  end

  def test_file_system_calls
    File.write(file("calls.rb"), "7.times { File.exist?(__dir__ + '/none') }\n")
    File.write(file("main.rb"), "require_relative 'calls'\n")
    boot = pitwall("boot", "--calls", "--record", file("x.pit"), "--quiet", "--", "ruby", "main.rb")
    skip boot.err if boot.err.include?("cannot record system calls")
    report = JSON.parse(pitwall("report", file("x.pit"), "--format", "json").out)
    calls = of(report, "calls")["calls"]
    assert_includes 7 + 3..7 + 40, calls, "seven, and those that find and read the file"
    segments(file("x.pit")).each { |one| one.each_syscall { |call| refute_equal "/proc/self/statm", call.path } }
  end

  # As in a program that `bundle exec` starts: Kernel#require is then code of the standard library, which sends
  # `no_warning_require` to Kernel itself.
  def test_bundler_begins_before_pitwall
    File.write(file("Gemfile"), "")
    program = 'RUBYOPT="-rbundler/setup $RUBYOPT" exec ruby main.rb'
    File.write(file("main.rb"), "$LOAD_PATH.unshift(__dir__)\nrequire 'slow'\nKernel.require 'late'\n")
    run = pitwall("boot", "--record", file("x.pit"), "--quiet", "--", "sh", "-c", program,
                  env: { "BUNDLE_GEMFILE" => file("Gemfile"), "BUNDLE_LOCKFILE" => nil, "BUNDLE_APP_CONFIG" => file("bundle") })
    assert_equal 0, run.status.exitstatus, run.err
    report = JSON.parse(pitwall("report", file("x.pit"), "--format", "json").out)
    assert_operator report["before"]["features"], :>, 100, "Bundler was loaded before"
    assert_equal %w[late nested slow], (report["features"].map { |row| File.basename(row["path"], ".rb") } &
                                        %w[slow nested late]).sort
    assert_equal 0, report["unwatched"]
  end

  CACHED = <<~RUBY
    $LOAD_PATH.unshift(__dir__)
    require "#{Checkout::ROOT}/lib/pitwall/fastboot"
    require "nested"
    require_relative "heavy"
    require "yaml"
    require "late" # Psych is looked for when a file is about to run
    YAML.load_file("#{Checkout::ROOT}/doc/ci/gitlab.yml") # not new, so it is stored
    eval("1", TOPLEVEL_BINDING, "Gemfile", 1)
  RUBY

  # pitwall/fastboot says of each file whether it came from the pack.
  def test_files_that_came_from_the_pack
    File.write(file("main.rb"), CACHED)
    cold = cached_boot
    assert_equal [false, false], (%w[nested heavy].map { |name| of(cold, name)["cached"] })
    assert_equal ["fastboot", 0], cold["caches"].first.values_at("name", "hits")
    assert_includes cold["caches"].first["outcomes"], "missing"
    File.write(file("nested.rb"), "NESTED = sleep(0.05)\n")
    warm = cached_boot("--fail-if", "cache_misses > 0", status: 1)
    cached = %w[nested heavy gitlab.yml Gemfile].to_h { |name| [name, of_file(warm, name)["cached"]] }
    assert_equal({ "nested" => false, "heavy" => true, "gitlab.yml" => true, "Gemfile" => nil }, cached)
    cache = warm["caches"].first
    assert_equal({ "changed" => 1 }, cache["outcomes"].slice("changed", "missing"))
    assert_equal [cache["hits"], cache["misses"]], warm["boot"].values_at("cache_hits", "cache_misses")
    assert_equal cache["hits"], warm["features"].count { |row| row["cached"] }
    text = pitwall("report", file("x.pit"), "--limit", "500").out
    assert_match(%r{^pitwall/fastboot: \d+ of \d+ files came from its cache \(}, text)
    assert_match(/uncached: .*nested\.rb/, text)
    refute_match(/uncached: .*heavy\.rb/, text)
    narrow = DrawnView.of_segments(Pitwall::Record.read(file("x.pit")).segments, :boot, width: 60)
    assert_match(/uncached: .*\.rb/, narrow, "the path is cut, not why it took long")
    page = pitwall("report", file("x.pit"), "--format", "html", "--out", file("x.html"))
    assert_equal 0, page.status.exitstatus, page.err
    tab = JSON.parse(page_json(File.read(file("x.html"))))["tabs"].find { |one| one["key"] == "boot" }
    assert_equal "cache", tab["columns"].map { |column| column.fetch("label") }.last
    assert_equal [tab["columns"].size], tab["rows"].map(&:size).uniq
    assert_includes tab["rows"].map(&:last), "fastboot changed"
  end

  ZONES = <<~'RUBY'.sub("READ_BY\n", ZoneFile::READER)
    require "tzinfo"
    Pitwall::Fastboot::DataCache.prepend(Module.new { def fresh?(_) = false }) if defined?(Pitwall::Fastboot)
    require "late" # tzinfo's reader is looked for when a file is about to run
    READ_BY
    require "pathname"
    p READER.read(Pathname("zone")).abbreviation
    begin; READER.read("none"); rescue SystemCallError; end
  RUBY

  def test_time_zones
    write_files("main.rb" => ZONES, "zone" => ZoneFile.bytes([[0, false, "UTC"]], [], "UTC0"))
    options = ["-I", @dir, *ZoneFile::LIBS.flat_map { |path| ["-I", path] }]
    accelerator = ["-r", "#{Checkout::ROOT}/lib/pitwall/fastboot.rb"]
    rows = [[], accelerator, accelerator].map do |more|
      report = cached_boot("--", "ruby", *options, *more, "main.rb")
      zones = report["features"].select { |row| row["kind"] == "zoneinfo" }
      assert_equal [%w[zone loaded], %w[none raised]], (zones.map { |row| [File.basename(row["path"]), row["ending"]] })
      zones.first
    end
    assert_equal [nil, false, true], (rows.map { |row| row["cached"] })
    assert_equal "main.rb", File.basename(rows.first["from"])
  end

  # Then Kernel#require is the accelerator's. It calls Ruby's own, which is watched.
  def test_the_accelerator_begins_before_pitwall
    File.write(file("main.rb"), <<~RUBY)
      $LOAD_PATH.unshift(__dir__)
      require "nested"
      begin; require "no_such_file"; rescue LoadError; end
      require "warns"
      begin; $VERBOSE = nil; require "heavy"; ensure; $VERBOSE = false; end
      begin; YAML.load_file("none.yml"); rescue SystemCallError; end if require "yaml"
    RUBY
    File.write(file("warns.rb"), "if a = 1 then end\n")
    accelerator = "#{Checkout::ROOT}/lib/pitwall/fastboot.rb"
    reports = Array.new(2) { cached_boot("--", "ruby", "-r", accelerator, "main.rb") }
    paths = reports[0]["features"].map { |row| row["path"] }
    assert_equal paths.uniq, paths
    assert_equal [nil, true], [of_file(reports[1], "no_such_file")["cached"], of_file(reports[1], "nested")["cached"]]
    assert_equal({ "warned" => 1, "silenced" => 1 }, reports[1]["caches"].first["outcomes"], "never kept, and why")
    assert_empty reports[1]["advice"].select { |one| one["kind"].end_with?("_cache") }
  end

  ASKED = { "constant" => "autoload", "by_name" => "autoload", "in_block" => "autoload", "plain" => "require",
            "sent" => "require", "by_method" => "require", "by_each" => "require", "of_kernel" => "require",
            "deep" => "require", "by_marshal" => "autoload", "by_yaml" => "autoload" }.freeze
  ASKS = <<~RUBY
    { Constant: "constant", ByName: "by_name", InBlock: "in_block", ByMarshal: "by_marshal", ByYaml: "by_yaml" }
      .each { |name, file| autoload name, file }
    Constant
    Object.const_get(:ByName)
    1.times { |i| [i, InBlock] }
    require "plain"
    send(:require, "sent")
    method(:require).call("by_method")
    %w[by_each].each(&method(:require))
    Kernel.require "of_kernel"
    def deep(number) = [number, require("deep")]
    deep(1)
    Marshal.load("\x04\bc\x0eByMarshal")
    require "yaml"
    YAML.unsafe_load("--- !ruby/object:ByYaml {}\n")
  RUBY
  JITS = %w[YJIT ZJIT].select { |name| defined?(RubyVM) && RubyVM.const_defined?(name) }.map(&:downcase)

  # Each of these options changes which `require` Ruby calls, or how Ruby calls it. With the options of a JIT, code that
  # calls `require` is compiled before the recording begins.
  def test_loads_of_constants_are_autoloads
    write_files("main.rb" => ASKS)
    ASKED.each_key { |name| write_files("#{name}.rb" => "class #{name.split("_").map(&:capitalize).join}; end\n") }
    accelerator = ["-r", "#{Checkout::ROOT}/lib/pitwall/fastboot.rb"]
    jits = JITS.map { |name| ["--#{name}", "--#{name}-call-threshold=1"] }
    [[], accelerator, ["--disable-gems"], *jits, *jits.map { |options| options + accelerator },
     *jits.map { |options| options + ["--disable-gems"] }].each do |options|
      report = cached_boot("--", "ruby", "-I", @dir, *options, "main.rb")
      kinds = report["features"].to_h { |row| [File.basename(row["path"], ".rb"), row["kind"]] }
      assert_equal asked_with(options), kinds.slice(*ASKED.keys), options.join(" ")
    end
  end

  # With ZJIT it is not known who called RubyGems' require.
  def asked_with(options)
    return ASKED unless options.first == "--zjit" && options.size == 2

    ASKED.merge(%w[constant in_block by_marshal].to_h { |name| [name, "require"] })
  end

  def of_file(report, name)
    report["features"].find { |row| [name, "#{name}.rb"].include?(File.basename(row["path"])) } || flunk("no #{name}")
  end

  def cached_boot(*options, status: 0)
    out = file("boot.json")
    command = options.include?("--") ? [] : %w[-- ruby main.rb]
    run = pitwall("boot", "--record", file("x.pit"), "--format", "json", "--out", out, *options, *command,
                  env: { "PITWALL_BOOT_CACHE" => file("cache") })
    assert_equal status, run.status.exitstatus, run.err
    JSON.parse(File.read(out))
  end

  # As small as Bootsnap is to Pitwall. The second file's loads are told to the program, too.
  BOOTSNAP = <<~RUBY
    $LOAD_PATH.unshift(__dir__)
    module Bootsnap
      class << self
        attr_accessor :instrumentation_enabled
        def instrumentation=(callback)
          @instrumentation = callback
          self.instrumentation_enabled = !!callback
        end
        def _instrument(event, path) = @instrumentation.call(event, path)
      end
    end
    class << RubyVM::InstructionSequence
      def load_iseq(path)
        event = { "slow" => :stale, "nested" => :hit, "late" => :revalidated, "heavy" => :miss }[File.basename(path, ".rb")]
        Bootsnap._instrument(event, path) if event && Bootsnap.instrumentation_enabled
        nil
      end
    end
    require "next"
    require "slow"
    told = []
    Bootsnap.instrumentation = ->(event, path) { told << [event, File.basename(path)] }
    require "late"
    require "heavy"
    exit(told == [[:revalidated, "late.rb"], [:miss, "heavy.rb"]])
  RUBY

  def test_files_that_came_from_bootsnap
    File.write(file("main.rb"), BOOTSNAP)
    report = boot
    cached = %w[slow nested late heavy next].to_h { |name| [name, of(report, name)["cached"]] }
    assert_equal({ "slow" => false, "nested" => true, "late" => true, "heavy" => false, "next" => nil }, cached)
    assert_equal [{ "name" => "bootsnap", "hits" => 2, "misses" => 2, "outcomes" => { "stale" => 1, "miss" => 1 } }],
                 report["caches"]
  end

  def test_bad_input_gets_one_line
    uncached = pitwall("boot", "--fail-if", "cache_misses > 3", "--", "ruby", "-e", "1", env: QUIET)
    assert_equal 4, uncached.status.exitstatus
    assert_match(/^pitwall: --fail-if cache_misses > 3: .*no cache of compiled code was asked$/, uncached.err)
    several = pitwall("boot", "--quiet", "--fail-if", "load_path > 1, calls > 5, rss > 1GB, features > 2", "--", "ruby",
                      "-e", "1", env: QUIET)
    assert_equal 1, several.status.exitstatus
    told = several.err.lines.map { |line| line[/: (\w+ (?:is|cannot be judged)\b)/, 1] }
    assert_equal ["load_path is", "features is", "calls cannot be judged"], told, several.err
    assert_one_line 2, /--fail-if/, pitwall("boot", "--fail-if", "speed > 3", "--", "ruby", "-e", "1", env: QUIET)
    assert_one_line 2, /add --calls/, pitwall("boot", "--heaviest", "calls", "--", "ruby", "-e", "1", env: QUIET)
  end
end
