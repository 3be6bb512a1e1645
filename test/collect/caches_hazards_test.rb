# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/own_walk"
require_relative "../support/recorded_program"
require "pitwall/analyse"

# Changes of caches in programs that do everything at once: each is counted once, and the program ends as it would
# alone.
class CachesHazardsTest < Minitest::Test
  include RecordedProgram

  # Threads that change classes beside others that collect and compact, exceptions, throws, fibers and Ractors.
  PROGRAM = <<~'RUBY'
    BASE = Class.new
    module Mixed; end
    def change(name)
      BASE.define_method(name) { 1 }
      BASE.define_method(1) { 1 }
    rescue TypeError
      catch(:out) { Object.new.extend(Mixed).then { throw :out } }
    end
    value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
    record do
      Array.new(4) do |t|
        Thread.new { 25.times { |n| change(:"t#{t}_#{n}"); Thread.pass if n % 5 == 0 } }
      end.each(&:join)
      Fiber.new { 5.times { |n| change(:"f#{n}"); Fiber.yield } }.then { |fiber| 6.times { fiber.resume } }
      GC.auto_compact = true if GC.respond_to?(:auto_compact=) && GC.respond_to?(:compact)
      GC.stress = true
      5.times { |n| change(:"g#{n}") }
      GC.stress = false
      GC.compact if GC.respond_to?(:compact)
      value.call(Ractor.new { 5.times { |n| BASE.class_eval("def r#{n} = 1") } })
      if ARGV.empty?
        puts fork { 5.times { |n| change(:"c#{n}") }; exit!(3) }
        Process.wait
        puts $?.exitstatus
      end
      BASE.class_eval { def last = 2 }
    end
    puts BASE.instance_methods(false).size, BASE.new.last, BASE.new.t0_0
  RUBY
  private_constant :PROGRAM

  def settings = { mode: "none", collectors: { "caches" => { "lines" => "1" } } }

  # From 3.4 on Ruby itself defines a method when the first Ractor begins.
  def counts(segment)
    [["method_added", "BASE#"], ["object_extended", "Mixed in "]].map do |kind, subject|
      segment.cache_changes.count { |change| change.kind == kind && change.subject.start_with?(subject) }
    end
  end

  # --zjit: 4.0 and newer
  def jits
    %w[--yjit --zjit].select { |jit| system(RUBY, jit, "-e", "1", out: File::NULL, err: File::NULL) }
  end

  def run_counted(program, *options)
    out = attempt(program, options: ["-W0", *options])
    assert out.status.success?, "#{options}: #{out.status} #{out.err[0, 2000]}"
    assert_equal [116, 110], counts(segment), options.inspect
    assert_equal 0, segment.cache_changes_lost
    out.out.lines(chomp: true)
  end

  # Ruby 3.1's compaction damages a WeakMap in which 30 (or 62, 94…) keys have one value.
  def test_compaction_with_any_number_of_classes_of_one_line
    skip "needs a known layout" unless OwnWalk.used?
    run_program(<<~RUBY, options: ["-W0"])
      kept = []
      record do
        100.times do
          kept << Class.new << Object.new.singleton_class
          GC.compact if GC.respond_to?(:compact)
        end
      end
    RUBY
    made = segment.cache_changes.map(&:kind).tally
    assert_equal [100, 100], made.values_at("class_made", "singleton_class_made"), made
  end

  def test_each_change_is_counted_once
    skip "needs a known layout" unless OwnWalk.used?
    assert_equal %w[116 2 1], run_counted("ARGV << %(alone)\n#{PROGRAM}")
  end

  def test_each_change_is_counted_once_in_a_child_and_under_each_jit
    skip "needs a known layout" unless OwnWalk.used?
    [[], *jits.map { |jit| [jit] }].each do |options|
      child, *others = run_counted(PROGRAM, *options)
      assert_equal %w[3 116 2 1], others, options.inspect
      assert_equal [5, 5], counts(segment("a-#{child}.pit")), options.inspect
    end
  end

  # A refused start, forked children, an exec; hooks that one `def` defines again and again, and more hooks than are
  # watched; watched calls in fibers that are left; a Ractor that makes lines be compared again.
  LEFT = <<~'RUBY'
    require "pitwall/collect/definitions"
    definitions = Pitwall::Collect::Definitions
    Pitwall::Collect.send(:remove_const, :Definitions)
    puts problem { start("b.pit") }
    Pitwall::Collect.const_set(:Definitions, definitions)
    puts ObjectSpace.each_object(TracePoint).count(&:enabled?)
    definitions.singleton_class.prepend(Module.new do
      def dump(*) = File.write("dumps", "#{Process.pid == MAIN ? "main" : "child"}\n", mode: "a").then { super }
    end)
    MAIN = Process.pid
    BASE = Class.new
    class Plain
      def first = @first = 1
      def second = @second = 1
    end
    start(mode: "outside")
    [-> { exit!(0) }, -> { exec("true") }, -> { exit(0) }].each { |ends| Process.wait(fork(&ends)) }
    again = Array.new(20) { Class.new { def self.inherited(one) = one.name } }
    BASE.const_set(:Heir, Class.new(again.last))
    Array.new(520) { Class.new { define_singleton_method(:inherited) { |one| one.name } } }
    kept = Array.new(300) { Fiber.new { Class.new { Fiber.yield } }.tap(&:resume) }
    BASE.define_method(:last) { kept.size }
    i = 0
    while i < 1_200_000
      i += 1
    end
    Ractor.new { Module.new.tap { Plain.new.first; RACTORS = 1 }.const_set(:B, 1) }.then do |ractor|
      ractor.respond_to?(:value) ? ractor.value : ractor.take
    end
    Pitwall.request(route: "wakes") { nil }
    BASE.name
    MAINS = 1
    BASE.name
    Plain.new.second
    BASE.name
    stop
  RUBY
  private_constant :LEFT

  def test_what_never_ends_and_what_ends_elsewhere
    skip "needs a known layout" unless OwnWalk.used?
    measured = { mode: "none", collectors: { "caches" => { "definitions" => "1" } } }
    out = attempt(LEFT, options: ["-W0"], env: { "TEST_SETTINGS" => measured.inspect })
    assert out.status.success?, "#{out.status} #{out.err[0, 2000]}"
    refused, points = out.out.lines(chomp: true)
    assert_match(/cannot watch caches/, refused)
    assert_equal "0", points
    # None before the exec. A child may end before its recording has begun.
    *children, main = File.readlines(file("dumps"), chomp: true).sort
    assert_equal "main", main
    assert_includes [%w[child], %w[child child]], children
    changes = segment.cache_changes
    assert_equal 1, changes.count { |change| change.kind == "method_added" && change.subject == "BASE#last" }
    assert_equal 9, segment.cache_changes_lost
    assert_equal 1, changes.count { |change| change.subject == "(anonymous class made at program.rb:19)" }
    assert_equal 1, segment.cache_line_rests
    last = changes.last(3).map { |change| "#{change.kind} #{change.subject}" }
    assert_match(/constant_set MAINS|shape_made .*Plain/, last.join(", "))
  end

  # Names that C strings and symbols do not take, methods with the errors of their own, Ruby's methods redefined.
  NAMES = <<~'RUBY'
    class Hooked
      def self.method_added(name) = nil
    end
    File.binwrite("m\u00f3dulo.rb", "MADE = Class.new\nMIXED = Module.new { def self.x = 1 }\n")
    calls = [-> { private :undefined_name, "\xff" }, -> { private "\xff" }, -> { autoload "\xff", "x" },
             -> { const_set "\xff", 1 }, -> { alias_method "a\xff", :none }, -> { throw :nowhere }]
    errors = lambda do
      calls.map do |call|
        Module.new.module_eval(&call)
      rescue StandardError => error
        [error.class, error.message[/\A[\w ]*/], $!.equal?(error)]
      end
    end
    alone = errors.call
    record do
      load "./m\u00f3dulo.rb"
      Hooked.define_method("a\0b") { 1 }
      String.define_method("c\0d") { 2 }
      [String, Integer, Array].each { |klass| klass.define_method(:"") { 3 } }
      String.define_method("+ %") { 4 }
      def Hooked.later = 1
      p errors.call == alone, $!
      class Class
        def inherited(_) = nil
      end
      module Kernel
        def require_relative(_) = nil
      end
      GC.start
      owners = ObjectSpace.each_object(UnboundMethod).map { |method| [method.owner, method.name] }
      p [[Class, :inherited], [Kernel, :require_relative]] - owners
    end
    p "".public_send(:""), Hooked.new.public_send("a\0b"), Class.new.new.class.superclass
  RUBY
  private_constant :NAMES

  def test_any_name_and_any_error_is_the_programs_own
    skip "needs a known layout" unless OwnWalk.used?
    both = { mode: "none", collectors: { "caches" => {}, "boot" => {} } }
    out = attempt(NAMES, env: { "TEST_SETTINGS" => both.inspect })
    assert_equal ["true", "nil", "[]", "3", "1", "Object"], out.out.lines(chomp: true), out.err[0, 2000]
    assert out.status.success?, out.err[0, 2000]
    changes = segment.cache_changes.map { |change| [change.kind, change.subject.b] }
    ["Hooked#a\0b", "String#c\0d", "String#", "Integer#", "Array#", "String#+ %", "Hooked.later"].each do |subject|
      assert_equal 1, changes.count(["method_added", subject.b]), subject.inspect
    end
    assert_includes changes, ["class_made", "(anonymous class made at m\u00f3dulo.rb:1)".b]
    assert_includes changes, ["module_made", "(anonymous module made at m\u00f3dulo.rb:2)".b]
  end
end
