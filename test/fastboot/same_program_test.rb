# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fastboot_program"

# Programs that show how their files were found, compiled and loaded. Each prints the same with the accelerator, whether
# the pack is empty, has the program's code, or has code whose files were touched.
class FastbootSameProgramTest < Minitest::Test
  include FastbootProgram

  # @return [Array<Boot>] with the pack empty, then full
  # @param settle wait until files' attributes are relied on. Otherwise their content decides.
  def assert_same_boots(files, *arguments, env: {}, boots: 2, settle: false)
    write_files(files)
    sleep 3.1 if settle
    expected = plain(*arguments, "main.rb", env: env)
    assert_match(/^ends$/, expected.out, expected.err)
    Array.new(boots) { boot(*arguments, "main.rb", env: env) }.each_with_index do |found, i|
      assert_same expected, found, "boot #{i}: #{found.counts}"
    end
  end

  # @param from [Integer] files whose code must come from the pack in the second boot
  def assert_loads(boots, from)
    assert_operator boots[0].counts["stored"].to_i, :>=, from, boots[0].counts.inspect
    assert_operator hits(boots[1]), :>=, from, boots[1].counts.inspect
  end

  # All that compiled code has to carry: literals, kinds of code, places.
  ZOO = <<~'RUBY'
    # -*- coding: utf-8 -*-
    # shareable_constant_value: literal
    TABLE = { a: [1, "two", :"drei ü"], 1.5 => 2r, 3i => nil..4, "x" => 1...2.5 }
    # shareable_constant_value: none
    p TABLE, TABLE.frozen?, TABLE[:a][1].frozen?, Ractor.shareable?(TABLE)
    p 12345678901234567890123, -0.0, 1e400, "\xff\u00e4".valid_encoding?, "\xff".b, ?a, :"\u{1F600}", %w[a b], %i[c d]
    p "lit".frozen?, "lit".equal?("lit"), "a#{1}b".frozen?, `echo shell`, <<~TEXT, __LINE__, __FILE__, __dir__, __method__.inspect
      text #{1 + 1}
        more
    TEXT
    Array.new(2) { |i| p(/a#{i}/o.source, /(?<name>x)/mix.match("X")&.named_captures, /ü/.encoding) }
    def parameters(a, (b, c), d = 1, *e, f, g:, h: 2, **i, &j) = binding.local_variables
    p method(:parameters).parameters, parameters(1, [2, 3], 4, g: 5), method(:parameters).arity
    def forwards(...) = parameters(...)
    p forwards(1, [2, 3], 4, g: 5).size
    p [[1, 2], [3, 4]].map { _1 + _2 }, [[1]].each_with_index.map(&:first), ->(x, y = x) { y }.curry.arity
    case { name: "n", list: [1, [2, 3]], other: nil }
    in { name: String => name, list: [Integer => first, [*, last]], **rest } if first < last
      p name, first, last, rest
    end
    catch(:done) { [1].each { begin; throw :done; ensure; puts "ensured"; end } }
    p((1..20).select { |i| true if (i % 5).zero?..(i % 3).zero? })
    i = 0
    begin; i += 1; raise "again" if i < 3; rescue; retry; else; p i; ensure; puts "end #{i}"; end
    while true do break p(:broken) end
    p (begin; 1; end while false), [*1..3, *nil], { **TABLE }.size, defined?(Zoo), defined?(puts), defined?(yield)
    module Refined; refine(String) { def shout = upcase + "!" }; end
    using Refined
    p "x".shout, ["x"].map(&:shout)
    class Zoo
      attr_accessor :state
      alias other state
      CONSTANT = :inner
      @@class_variable = 1
      class << self; def build = new.tap { |zoo| zoo.state = @@class_variable; zoo.state ||= 2; zoo.state += 1 }; end
      def method_missing(name, ...) = name.end_with?("?") ? name : super
      def respond_to_missing?(*) = true
    end
    p Zoo.build.other, Zoo.new.what?, Zoo.instance_method(:state=).source_location, Module.nesting
    BEGIN { puts "first #{defined?(Zoo).inspect}" }
    END { puts "at the end" }
    begin
      Zoo.new.then { |zoo| zoo.unknown(1)
        .foo }
    rescue NoMethodError => error
      puts error.full_message(highlight: false).gsub(/an instance of Zoo|#<Zoo.*?>/, "ZOO")
    end
    begin
      [1,
       nil.foo(
         2)]
    rescue => error
      puts error.detailed_message(highlight: false) if error.respond_to?(:detailed_message)
      puts error.message, error.backtrace, error.backtrace_locations.map { |place| [place.label, place.absolute_path] }.inspect
    end
    begin
      eval("1 +\n nil.bar", binding, "given.rb", 7)
    rescue => error
      puts error.backtrace.first
    end
    $global, @instance = 1, 2
    p self.to_s, binding.local_variables.sort.first(3), binding.source_location, @instance, [$global, $~, $1]
    code = RubyVM::InstructionSequence.of(Zoo.instance_method(:method_missing))
    p code.path, code.absolute_path, code.label, code.base_label, code.first_lineno, code.trace_points
    puts code.disasm.gsub(/\(catch_type.*|<.*?>/, ""), code.to_a[4].slice(:arg_size, :code_location, :node_id).inspect
    p (RubyVM::AbstractSyntaxTree.of(Zoo.instance_method(:state?)) rescue $!.class)
    p (RubyVM::AbstractSyntaxTree.of(Zoo.instance_method(:method_missing)).type rescue $!.class)
    p ObjectSpace.count_objects.key?(:TOTAL), Zoo.const_source_location(:CONSTANT), Object.const_source_location(:Zoo)
    return puts("returned") if Zoo
    puts "not reached"
  RUBY

  def test_everything_that_code_has
    main = "2.times { load './zoo.rb' rescue p $!.class }; require_relative 'zoo'; puts 'ends'"
    # A refinement is the second time a warning of no interest, and a shareable constant an error of no interest.
    main = "require_relative 'zoo'; puts 'ends'" if RUBY_VERSION < "3.2"
    [[], ["--enable=frozen-string-literal"], ["--disable=frozen-string-literal", "-W:deprecated"]].each do |options|
      boots = assert_same_boots({ "main.rb" => main, "zoo.rb" => ZOO }, *options, settle: options.empty?)
      assert_operator hits(boots[1]), :>=, 1, boots[1].counts.inspect
    end
  end

  def test_load
    files = { "main.rb" => <<~'RUBY', "part.rb" => <<~'PART', "data.rb" => "p defined?(DATA)\n__END__\nx" }
      module Wrap; end
      load "./part.rb"
      load "./part.rb", true
      load "./part.rb", Wrap
      load File.expand_path("part.rb"), Wrap
      p defined?(Constant), Wrap.constants, Wrap.const_source_location(:Constant)
      p Object.private_method_defined?(:helper)
      load "data.rb"
      [nil, 1, "nowhere.rb", "a\0b", "", "."].each do |name|
        load(name)
      rescue Exception => error
        puts "#{error.class} #{error.message}"
      end
      eval("load './part.rb'", TOPLEVEL_BINDING)
      Thread.new { load "./part.rb" }.join
      Fiber.new { load "./part.rb" }.resume
      puts "ends"
    RUBY
      Constant = 1 unless defined?(Constant)
      def helper = :helper
      p Module.nesting, self.to_s, singleton_class.include?(defined?(Wrap) ? Wrap : Kernel), helper, binding.local_variables
      local = 1
      p __method__, caller.size, caller_locations(0, 1).first.label
    PART
    boots = assert_same_boots(files, settle: true)
    assert_loads boots, 2
    assert_operator boots[1].counts["hit"].to_i, :>=, 2, boots[1].counts.inspect
  end

  def test_errors_of_files
    files = { "main.rb" => <<~'RUBY', "syntax.rb" => "1 +\n)", "raises.rb" => "A = 1\nraise 'from file'",
      2.times do
        %w[syntax raises throws missing nested utf16 ok].each do |name|
          p catch(:out) { require_relative name }
        rescue Exception => error
          puts "#{name} #{error.class} #{error.message} #{error.backtrace&.first}"
        end
      end
      p $LOADED_FEATURES.grep(/#{__dir__}/)
      File.write("raises.rb", "puts 'mended'")
      File.write("syntax.rb", "puts 'mended, too'")
      p require_relative("raises"), require_relative("syntax")
      File.write("ok.rb", "puts 'written anew'")
      load "./ok.rb"
      File.write("raises.rb", "A = 1\nraise 'from file'")
      File.write("syntax.rb", "1 +\n)")
      File.write("ok.rb", "puts 'ok'")
      at_exit { puts "ends" }
      require_relative "exits"
    RUBY
      "throws.rb" => "throw :out, :thrown", "nested.rb" => "require 'nothing/of/this'", "ok.rb" => "puts 'ok'",
      "utf16.rb" => "# encoding: nonsense\n1", "exits.rb" => "exit 3" }
    boots = assert_same_boots(files)
    assert_operator hits(boots[1]), :>=, 2
  end

  def test_coverage
    files = { "main.rb" => <<~'RUBY', "a.rb" => "def a(x)\n  x ? 1 : 2\nend\na(1)\n", "b.rb" => "1.zero? && 2\n" }
      require "coverage"
      load "./a.rb"
      [{}, { lines: true, branches: true, methods: true }, { oneshot_lines: true }, :all, { eval: true }].each do |modes|
        Coverage.setup(*modes) rescue next puts("no #{modes}")
        load "./b.rb"
        Coverage.resume
        load "./a.rb"
        p Coverage.peek_result.transform_keys { |path| File.basename(path) }
        load "./b.rb"
        p Coverage.result.transform_keys { |path| File.basename(path) }, Coverage.running?
      rescue => error
        puts error.message
        Coverage.result rescue p $!.class
      end
      load "./a.rb"
      load "./b.rb"
      puts "ends"
    RUBY
    boots = assert_same_boots(files)
    assert_operator boots[1].counts["coverage"].to_i, :>=, 4, boots[1].counts.inspect
    assert_operator hits(boots[1]), :>=, 2
  end

  def test_options_of_the_compiler
    files = { "main.rb" => <<~'RUBY', "a.rb" => <<~'PART' }
      code = RubyVM::InstructionSequence
      before = code.compile_option
      options = [{ frozen_string_literal: true }, { tailcall_optimization: true, trace_instruction: false }, false,
                 { peephole_optimization: false, specialized_instruction: false, operands_unification: false }, before]
      options.each do |option|
        code.compile_option = option
        load "./a.rb"
      end
      code.compile_option = before
      Warning[:deprecated] = true
      load "./a.rb"
      puts "ends"
    RUBY
      def down(n) = n.zero? ? caller.size : down(n - 1)
      p "text".frozen?, down(50) < 50, RubyVM::InstructionSequence.of(method(:down)).disasm.scan(/opt_\w+|send/)
      def both(a) = a.then { _1 + 1 }
      p RubyVM::InstructionSequence.of(method(:both)).disasm.lines.size
    PART
    boots = assert_same_boots(files)
    assert_operator hits(boots[1]), :>=, 6, boots[1].counts.inspect
  end

  # Events of the program's own trace, without those of the accelerator's methods. A debugger sets breakpoints so.
  def test_traces_and_breakpoints
    files = { "main.rb" => <<~'RUBY', "a.rb" => <<~'PART', "b.rb" => "B = [1, 2].map do |i|\n  i + 1\nend\n" }
      seen = []
      compiled = []
      trace = TracePoint.new(:script_compiled, :class, :end, :call, :return, :line, :b_call, :raise) do |event|
        next unless event.path.start_with?(__dir__) || event.event == :script_compiled

        seen << [event.event, event.path, event.lineno, event.method_id]
        next unless event.event == :script_compiled

        code = event.instruction_sequence
        compiled << [code.path, code.absolute_path, code.label, code.first_lineno, event.eval_script]
      end
      trace.enable { require_relative "a"; load "./b.rb"; eval("A.new.call(1)"); A.new.call(2) rescue p $!.message }
      puts seen.inspect, compiled.inspect

      hit = []
      breaks = []
      points = TracePoint.new(:script_compiled) do |event|
        queue = [event.instruction_sequence]
        while (code = queue.shift)
          code.each_child { |child| queue << child }
          lines = code.trace_points.select { |_, kind| kind == :line }.map(&:first)
          breaks << [code.label, lines]
          lines.uniq.each do |line|
            point = TracePoint.new(:line) { |at| hit << [at.lineno, at.method_id, at.binding.local_variables] }
            point.enable(target: code, target_line: line)
          end
        end
      end
      points.enable { load "./a.rb"; load "./b.rb"; A.new.call(3) rescue nil }
      puts breaks.inspect, hit.inspect, "ends"
    RUBY
      class A
        def call(x)
          y = x * 2
          raise "odd" if y == 4
          yield_it { |z| z + y }
        end

        def yield_it = yield(1)
      end
    PART
    assert_loads assert_same_boots(files), 2
  end

  # `__FILE__` has the encoding of the path that `load` was given. `__dir__` has the encoding of file names.
  def test_encodings_of_paths
    shows = "p [__FILE__, __dir__, 'text', :a.inspect].map(&:encoding)"
    files = { "main.rb" => <<~'RUBY', "a.rb" => shows, "b.rb" => shows }
      %w[US-ASCII UTF-8 BINARY EUC-JP].each { |name| load File.expand_path("link/a.rb").force_encoding(name) }
      Encoding.default_external = "EUC-JP"
      load File.expand_path("link/b.rb").force_encoding("UTF-8")
      require_relative "a"
      puts "ends"
    RUBY
    File.symlink(".", file("link"))
    %w[C.UTF-8 C].product([[], ["-Ku"]]).each do |locale, options|
      boots = assert_same_boots(files, *options, env: { "LC_ALL" => locale })
      assert_operator hits(boots[1]), :>=, 4, boots[1].counts.inspect
    end
  end

  # Alone, and while another thread is loading.
  def test_circles_and_threads
    files = { "main.rb" => <<~'RUBY', "circle_a.rb" => "p 'a'\nputs require('circle_b')\nputs 'a ends'\nA = 1",
      $LOAD_PATH.unshift(__dir__)
      puts require("circle_a"), require("circle_b")
      autoload :Slow, "slow"
      module Deep; autoload :Inner, "deep"; autoload :Wrong, "wrong"; end
      queue = Queue.new
      look = -> { [Slow::VALUE, Deep::Inner, require("plain"), (Deep::Wrong rescue $!.class)] }
      found = Array.new(8) { |i| Thread.new { queue.pop && look.() } }
      8.times { queue << 1 }
      values = found.map(&:value)
      p values.map { |value| value.values_at(0, 1, 3) }.uniq, values.count { |value| value[2] }
      p Object.autoload?(:Slow), Deep.autoload?(:Wrong), Object.const_source_location(:Slow)
      Object.send(:remove_const, :Slow)
      $LOADED_FEATURES.delete_if { |path| path.end_with?("/slow.rb") }
      autoload :Slow, "#{__dir__}/slow.rb"
      p Slow::VALUE, $LOADED_FEATURES.grep(/#{__dir__}/).map { |path| File.basename(path) }.sort
      puts "ends"
    RUBY
      "circle_b.rb" => "puts 'b'\nputs require('circle_a')\nputs defined?(A).inspect", "plain.rb" => "sleep 0.05",
      "slow.rb" => "sleep 0.1\nmodule Slow; sleep 0.05; VALUE = 1; end\nputs 'slow was run'",
      "deep.rb" => "sleep 0.05\nmodule Deep; Inner = :inner; end", "wrong.rb" => "module Deep; end" }
    assert_loads assert_same_boots(files), 6
    assert_same_boots(files, "-w") # Ruby warns of circles
  end

  def test_working_folders_and_paths
    files = { "main.rb" => <<~'RUBY', "lib/a.rb" => "puts __FILE__, __dir__", "other/a.rb" => "p :other",
      $stdout.sync = true
      home = Dir.pwd
      show = lambda do |name|
        p [name.to_s[0, 9], require(name)]
      rescue Exception => error
        puts "#{error.class} #{error.message} #{error.path.inspect if error.is_a?(LoadError)}"
      end
      forget = -> { $LOADED_FEATURES.delete_if { |path| path.start_with?(home) } }
      File.symlink("lib", "link") unless File.symlink?("link")
      $LOAD_PATH.unshift("lib", ".")
      show.("a")
      Dir.chdir("other") { show.("a"); forget.(); show.("a"); show.("./a"); require_relative "other/a" }
      forget.()
      $LOAD_PATH.replace($LOAD_PATH.reject { |path| path == "lib" || path == "." })
      $LOAD_PATH.unshift("#{home}/link")
      show.("a")
      show.("#{home}/lib/a")
      $LOAD_PATH.unshift(Struct.new(:to_path).new("#{home}/other"))
      forget.()
      show.("a")
      $LOAD_PATH.shift
      forget.()
      ["a.rb", "./lib/a", "lib/../lib/a", "../#{File.basename(home)}/lib/a", "~/a", "sp ace", "\u00fc", "new\nline", "a.so", "a.", "A",
       "set", "set.rb", "monitor.so", "rbconfig", "thread", "", "/", "b.rb.rb", "b.rb", "c.d", Struct.new(:to_path).new("a"),
       Struct.new(:to_str).new("e"), :a, nil].each { |name| $LOAD_PATH.push("#{home}/lib") unless $LOAD_PATH.include?("#{home}/lib"); show.(name) }
      p $LOADED_FEATURES.grep(/\A#{home}/).map { |path| path.delete_prefix(home) }
      p $LOAD_PATH.resolve_feature_path("a"), ($LOAD_PATH.resolve_feature_path("none") rescue $!.class)
      forget.()
      $LOAD_PATH.replace(["#{home}/lib"].freeze + $LOAD_PATH).freeze
      show.("a")
      show.("none")
      puts "ends"
    RUBY
      "lib/sp ace.rb" => "p 1", "lib/\u00fc.rb" => "p 2", "lib/new\nline.rb" => "p __FILE__", "lib/b.rb.rb" => "p :b",
      "lib/c.d.rb" => "p :cd", "lib/e.rb" => "p :e" }
    boots = assert_same_boots(files, env: { "HOME" => file("lib") })
    assert_operator hits(boots[1]), :>=, 6, boots[1].counts.inspect
  end

  # As Spring and Puma do: the program is booted once, then its files change, and children load them.
  def test_forks_after_the_boot
    files = { "main.rb" => <<~'RUBY', "late.rb" => "p [:late, __FILE__]", "early.rb" => "p :early" }
      $stdout.sync = true
      require_relative "early"
      2.times do |i|
        File.write("changing.rb", "p [:changing, #{i}]")
        pid = fork { load "./changing.rb"; require_relative "late"; load "./early.rb"; Pitwall::Fastboot.flush if defined?(Pitwall) }
        Process.wait(pid)
        p $?.exitstatus
      end
      File.write("changing.rb", "p [:changing, 2]")
      load "./changing.rb"
      pid = fork { load "./changing.rb"; exec(RbConfig.ruby, "-e", "load './changing.rb'; load './late.rb'") }
      Process.wait(pid)
      puts "ends"
    RUBY
    assert_loads assert_same_boots(files, boots: 3), 1
  end

  # Ruby prints each exception with --debug. Programs trace them.
  def test_exceptions_that_nobody_sees
    files = { "main.rb" => <<~'RUBY', "part.rb" => "p :part", "lib/found.rb" => "p :found" }
      raised = []
      trace = TracePoint.new(:raise) { |event| raised << event.raised_exception.class }
      trace.enable do
        $LOAD_PATH.unshift("/no/such/folder", "#{__dir__}/lib")
        load "./part.rb"
        require "found"
        require_relative "part"
      end
      p raised
      puts "ends"
    RUBY
    assert_same_boots(files)
    # The first boot with an empty folder for the pack.
    FileUtils.rm_rf(file("cache"))
    assert_same_boots(files, "--debug", "--disable-gems")
  end

  # Each way in which programs take Ruby's warnings. A warning of the compiler must appear in each boot.
  WARNINGS = {
    "none" => "", "silent" => "class << Warning; undef_method :warn; end",
    "alias" => "class << Warning; alias_method :old, :warn; def warn(text) = old(text.upcase); end",
    "reopened" => "module Warning; alias_method :old, :warn; def warn(text, **) = puts(\"got \#{text}\"); end",
    "extended" => "Warning.extend(Module.new { def warn(text, **words) = super(\"<\#{text.chomp}>\\n\", **words) })",
    "a block" => "Warning.define_singleton_method(:warn) { |text, **| puts \"<\#{text.chomp}>\" }",
    "a C method" => "class << Warning; alias warn puts; public :warn; end",
    "a stream" => "$stderr = Class.new { def write(*all) = $stdout.write(*all.map(&:upcase)) }.new",
    "frozen" => "Warning.freeze"
  }.freeze

  def test_warnings_of_the_compiler
    program = <<~'RUBY'
      load "./fine.rb" if %w[late].include?(ARGV[0])
      eval(File.read("how.rb"))
      p Warning.method(:warn).arity, Warning.method(:warn).parameters if Warning.respond_to?(:warn)
      p Warning.instance_method(:warn).owner
      3.times { load("./twice.rb") rescue p $!.class }
      load "./fine.rb"
      warn("told", uplevel: 0) rescue p $!.class
      warn("old", category: :deprecated) rescue p $!.class
      puts "ends"
    RUBY
    WARNINGS.each do |how, text|
      [[], ["late"]].each do |words|
        write_files("main.rb" => program, "how.rb" => text, "fine.rb" => "p :fine",
                    "twice.rb" => "p({ a: 1, a: 2 }.size)")
        expected = plain("main.rb", *words)
        boots = Array.new(2) { boot("main.rb", *words, cache: file("cache #{how}")) }
        boots.each { |found| assert_same expected, found, "#{how} #{words} #{found.counts}" }
        assert_match(/ends\n\z/i, expected.out, "#{how} #{expected.err}")
      end
    end
  end

  # A library's reload: constants are removed, and files are loaded again that may have changed.
  def test_zeitwerk_reloads
    # The oldest one: newer ones need a newer Ruby.
    lib = Dir[File.join(Checkout::ROOT, "vendor/shop/ruby/*/gems/zeitwerk-*/lib")].min
    skip "peer absent: the gems of examples/shop (script/demo installs them)" if lib.nil?
    files = { "main.rb" => <<~'RUBY', "app/user.rb" => "class User; NAME = Admin::Panel::TITLE; end",
      require "zeitwerk"
      File.write("app/admin/panel.rb", "class Admin::Panel; TITLE = 'first'; end")
      loader = Zeitwerk::Loader.new
      loader.push_dir("#{__dir__}/app")
      loader.enable_reloading
      loader.on_load { |path, value, file| puts "loads #{path} #{value} #{file}" }
      loader.setup
      p User::NAME, Admin.const_source_location(:Panel), Admin.autoload?(:Other)
      %w[second first third].each do |text|
        File.write("app/admin/panel.rb", "class Admin::Panel; TITLE = '#{text}'; end")
        loader.reload
        p User::NAME, User.name, $LOADED_FEATURES.grep(/#{__dir__}.app/)
      end
      File.write("app/fresh.rb", "Fresh = 1")
      loader.reload
      loader.eager_load
      p Fresh, Admin::Other
      File.unlink("app/fresh.rb")
      loader.reload
      p defined?(Fresh), Admin::Other
      puts "ends"
    RUBY
      "app/admin/panel.rb" => "", "app/admin.rb" => "module Admin; end",
      "app/admin/other.rb" => "class Admin::Other; end" }
    boots = assert_same_boots(files, "-I#{lib}", boots: 3)
    assert_operator hits(boots[1]), :>, 10, boots[1].counts.inspect
  end

  def test_boxes
    return pass if RUBY_VERSION < "4.0" # has none

    files = { "main.rb" => <<~'RUBY', "part.rb" => "class Part; def self.call = [name, __FILE__]; end" }
      box = Ruby::Box.new
      box.require("#{__dir__}/part")
      p box::Part.call, defined?(Part), (load("./part.rb") && Part.call), box::Part == Part
      puts "ends"
    RUBY
    boots = assert_same_boots(files, env: { "RUBY_BOX" => "1" })
    assert_includes boots[1].counts["reasons"], "Ruby::Box is on"
  end

  # Their method_missing, or a NoMethodError, would show a method of the accelerator.
  def test_require_bound_to_objects_without_its_methods
    files = { "main.rb" => <<~'RUBY', "lib/found.rb" => "p :found", "lib/other.rb" => "p :other" }
      class Proxy < BasicObject
        def method_missing(name, *arguments) = [:missing, name, arguments.map { |one| ::File.basename(one) }]
      end
      $LOAD_PATH.unshift("#{__dir__}/lib")
      bound = Kernel.instance_method(:require)
      p bound.bind_call(Proxy.new, "found"), bound.bind_call(Proxy.new, "found"), defined?(Gem)
      [[BasicObject.new, "other"], [Proxy.new, "nowhere"]].each do |object, name|
        p bound.bind_call(object, name)
      rescue NoMethodError, LoadError => error
        puts "#{error.class}: #{error.message[/[^(\n]*/]}"
      end
      puts "ends"
    RUBY
    assert_same_boots(files)
    assert_same_boots(files, "--disable-gems")
  end

  def test_ractors
    files = { "main.rb" => <<~'RUBY', "part.rb" => "Part = 1", "late.rb" => "Late = 2" }
      Warning[:experimental] = false
      require_relative "part"
      value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
      p value.(Ractor.new(__dir__) { |dir| [load("#{dir}/late.rb"), Late, warn("from a ractor")] })
      puts "ends"
    RUBY
    assert_same_boots(files, "--disable-gems")
  end

  BROKEN = { "broken.rb" => "# a comment\ndef foo(\n", "blank.rb" => "# a comment\n\n  \t\r\n# another" }.freeze

  # Ruby's older parser gives such a file the code of an empty one.
  def test_a_file_with_an_error_is_never_taken_for_an_empty_one
    [[], %w[-0777], %w[-00]].each do |options|
      write_files("main.rb" => "begin; require './broken'; rescue SyntaxError; puts 'no'; else; puts 'loaded'; end\n" \
                               "p require('./blank')\nputs 'ends'\n", **BROKEN)
      boots = assert_same_boots({}, "-W0", *options, boots: 3)
      assert_equal ["no\ntrue\nends\n"], boots.map(&:out).uniq
    end
  end

  # The name of the option is -K, and not -E.
  def test_the_encoding_of_source_files_is_part_of_the_key
    files = { "x.rb" => "Y = '\u3042'\n", "main.rb" => "require './x'\np Y.encoding\nputs 'ends'\n" }
    options = [[], %w[-Kn], %w[-Ku], []]
    write_files(files)
    options.each do |chosen|
      command = ["-E", "UTF-8", *chosen, "main.rb"]
      assert_same plain(*command), boot(*command), chosen
    end
  end

  def test_strings_say_where_they_were_made
    main = "require './x'\nbegin; A << 'x'; rescue FrozenError => error; puts error.message; end\nputs 'ends'\n"
    options = %w[--enable-frozen-string-literal --debug-frozen-string-literal]
    boots = assert_same_boots({ "x.rb" => "A = 'abc'\n", "main.rb" => main }, *options)
    assert_operator boots[1].counts["debug_strings"].to_i, :>, 0
  end

  # After any change of $LOAD_PATH, Ruby looks at all folders again, even if $LOAD_PATH then has the same elements.
  def test_a_folder_that_became_another_one
    main = <<~'RUBY'
      require "fileutils"
      FileUtils.mkdir_p(%w[w/r1 w/r2])
      %w[r1 r2].each { |release| %w[a b].each { |file| File.write("w/#{release}/#{file}.rb", "puts __FILE__") } }
      FileUtils.rm_f("w/now")
      File.symlink("r1", "w/now")
      $LOAD_PATH.unshift("#{Dir.pwd}/w/now")
      require "a"
      File.unlink("w/now")
      File.symlink("r2", "w/now")
      $LOAD_PATH << "/tmp"
      $LOAD_PATH.pop
      require "b"
      puts "ends"
    RUBY
    boots = assert_same_boots({ "main.rb" => main }, boots: 3)
    assert_match(%r{w/r1/a.rb\n.*w/r2/b.rb\n}, boots.last.out)
  end

  def test_a_name_with_a_path_of_its_own
    main = "class Name < String; def to_path = \"./y\"; end\nrequire Name.new('x')\nputs 'ends'\n"
    assert_same_boots({ "x.rb" => "puts :x\n", "y.rb" => "puts :y\n", "main.rb" => main }, "-I", ".")
  end

  def test_bundler_and_the_accelerator_warn_of_nothing
    lock = "GEM\n  specs:\n\nPLATFORMS\n  ruby\n  #{Gem::Platform.local}\n\nDEPENDENCIES\n"
    main = "ENV['BUNDLE_GEMFILE'] = 'Gemfile'\nrequire 'bundler/setup'\nrequire './x'\nputs 'ends'\n"
    assert_same_boots({ "Gemfile" => "", "Gemfile.lock" => lock, "x.rb" => "X = 1\n", "main.rb" => main }, "-w")
  end

  # Ruby would end by SIGXFSZ.
  def test_a_limit_of_file_sizes
    main = "Process.setrlimit(:FSIZE, 4096)\nrequire 'optparse'\nputs 'ends'\n"
    boots = assert_same_boots({ "main.rb" => main }, boots: 2)
    assert_equal ["ends\n"], boots.map(&:out).uniq
    assert_empty Dir[file("cache/*")].reject { |path| File.empty?(path) }
  end
end
