# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/allocating_program"
require_relative "../support/own_walk"
require_relative "../stress/stress"

# What Ruby 4 brought, recorded. What a Ruby does not have is not tested on it.
class Ruby4Test < Minitest::Test
  include AllocatingProgram

  KNOWN = OwnWalk.used?
  JITS = %i[YJIT ZJIT].select { |name| defined?(RubyVM) && RubyVM.const_defined?(name) }.map { |name| name.to_s.downcase }
                      .reject { |jit| ENV["TEST_RUBY_OPTIONS"].to_s.sub("--#{jit}", "").include?("jit") } # one at a time

  def settings = @settings || {}

  # Calls of each method by its name, where a trace counted them.
  def calls
    segment.calls.each_with_object(Hash.new(0)) { |row, sum| sum[segment.frame(row.node_id).name] += row.calls unless row.node_id.zero? }
  end

  # --- compiled code ---

  # Compiled code writes no pc into a new frame. Where a C function's frame was before, the word is 0, and rb_profile_frames
  # leaves the frame out: all of a method's time was its caller's.
  LEAVES = <<~'RUBY'
    NUMBERS = [3.0, 4.0]
    def first_leaf = (i = 0; i += 1 while i < 4_000; i)
    def second_leaf
      i = 0
      i += 1 while i < 8_000
      i
    end
    def both
      Math.hypot(*NUMBERS)
      first_leaf
      Math.hypot(*NUMBERS)
      second_leaf
    end
    def run(seconds)
      limit = cpu + seconds
      both while cpu < limit
    end
    run(0.2)
    record { run(1) }
  RUBY

  JITS.each do |jit|
    define_method(:"test_leaf_methods_have_their_frames_under_#{jit}") do
      return pass unless KNOWN
      %w[signal outside].each do |mode|
        @settings = { mode: mode }
        run_program(LEAVES, options: ["--#{jit}", "-W0"])
        rows = methods_of(segment, :cpu)
        assert_equal jit, segment.header.ruby["jit"]
        assert(segment.header.notes.any? { |note| note.start_with?("with #{jit.upcase}, a line is the one") })
        # It was all of it where frames were left out. (From outside, a busy machine gets few samples.)
        assert_operator rows.fetch("Object#both").own, :<, rows.fetch("Object#both").total * 0.5, mode
        assert_operator rows.fetch("Object#second_leaf").own, :>, rows.fetch("Object#first_leaf").own, mode
        assert_operator rows.fetch("Object#first_leaf").own, :>, 0, mode
        # Each leaf's lines are its own, the caller's its calls.
        lines = segment.node_frames.each_index.group_by { |node| segment.frames[segment.node_frames[node]]&.name }
        lines = lines.transform_values { |nodes| nodes.map { |node| segment.lines[node] }.uniq.sort }
        assert_empty lines.fetch("Object#second_leaf") - [*4..7], mode
        assert_empty lines.fetch("Object#first_leaf") - [2], mode
      end
    end

    define_method(:"test_a_trace_is_exact_under_#{jit}") do
      return pass unless KNOWN
      run_program(<<~'RUBY', options: ["--#{jit}", "-W0"])
        def leaf(i) = i + 1
        def middle(i) = leaf(i) + [i].map { |x| leaf(x) }.first
        def work(n) = n.times { |i| middle(i) }
        work(2_000) # compiled by now
        Pitwall.trace(record: "a.pit") { work(1_000) }
        work(2_000)
      RUBY
      assert_equal [1, 1_000, 1_000, 2_000, 1_000],
                   calls.values_at("Object#work", "block in Object#work", "Object#middle", "Object#leaf", "block in Object#middle")
      assert_equal 0, segment.tracing["lost_calls"]
    end

    define_method(:"test_objects_and_their_lines_under_#{jit}") do
      run_program(<<~'RUBY', options: ["--#{jit}", "-W0"])
        Thing = Class.new { attr_accessor :a }
        def text(i) = "a#{i}"
        def pair(i) = [i,
                       text(i)]
        def thing(i) = Thing.new.tap { |t| t.a = i }
        def work(n) = n.times { |i| pair(i); thing(i) }
        work(2_000)
        follow { work(1_000) }
      RUBY
      assert_balanced(segment)
      arrays = by_line.values_at([3, "Array"], [4, "Array"]).compact.sum # the interpreter of 3.1 names the line after
      assert_equal [1_000, 1_000], [by_line[[5, "Thing"]], arrays], by_line.inspect
      assert_operator by_line[[2, "String"]], :>=, 1_000
    end
  end

  # --- another garbage collector ---

  # Those of other makers tell of no causes, no phases and no steps. No such Ruby is at hand: what it says of itself is made up here.
  MODULAR = "GC.singleton_class.prepend(Module.new { def config(*) = { implementation: 'mmtk' } })"

  def test_another_garbage_collector_is_said
    File.write(file("modular.rb"), "#{MODULAR}\n")
    out = run_program(<<~'RUBY', options: ["-r./modular.rb"])
      record { burn(0.05); 3.times { GC.start } }
      puts problem { follow("b.pit") { "x" * 3 } }
      puts problem { Pitwall.start(record: "c.pit", mode: "outside") }
      stop
    RUBY
    assert_equal ["CannotMeasure: objects are counted with Ruby's own garbage collector only, not with what RUBY_GC_LIBRARY names", "nothing"], out.lines(chomp: true)
    assert_includes segment.header.notes, "garbage collector mmtk: it does not tell when it runs, so its time is the program's own here"
    assert_equal ["signal", 0, []], [segment.header.mode, segment.stat("gc_count"), segment.collections]
    assert_sampled("Object#burn", segment)
    assert_match(/\Amode outside does not work here .*collector/, segment("c.pit").header.notes.join("\n")) if KNOWN
    assert_equal "signal", segment("c.pit").header.mode
  end

  # --- Ruby::Box ---

  BOXED = <<~'RUBY'
    class Shop
      Item = Struct.new(:name)
      def self.sell(n) = n.times { |i| new.item(i) }
      def item(i) = Item.new("item".mark(i))
      def look = File.stat("/")
    end
    class String
      def mark(i) = [i].map { |x| "#{self}#{x}" }.first
      def loop_in_box(seconds)
        limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
        nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
      end
    end
  RUBY
  BOXES = <<~'RUBY'
    class Outside; end
    class String
      def mark(_) = "outside"
    end
    boxes = Array.new(2) { Ruby::Box.new.tap { |box| box.require(File.expand_path("boxed.rb")) } }
  RUBY

  if defined?(Ruby::Box)
    def run_boxed(source)
      File.write(file("boxed.rb"), BOXED)
      run_program(BOXES + source, env: { "RUBY_BOX" => "1" }, options: ["-W0"])
    end

    # Frames, lines and classes go by the names they have in their box, which are those that Ruby gives them.
    def test_frames_inside_boxes
      Stress::MODES.each do |mode|
        @settings = { mode: mode }
        run_boxed(<<~'RUBY')
          def across(box) = box.eval('"x".loop_in_box(0.05)')
          record { boxes.each { |box| across(box) } }
        RUBY
        assert_sane(segment)
        assert_sampled("String#loop_in_box", segment)
        assert_operator methods_of(segment, :cpu)["Object#across"].total, :>, methods_of(segment, :cpu)["String#loop_in_box"].total * 0.9, mode
      end
    end

    def test_a_trace_across_boxes
      return pass unless KNOWN
      run_boxed(<<~'RUBY')
        Pitwall.trace(record: "a.pit") { boxes.each { |box| box::Shop.sell(100) }; 7.times { "x".mark(1) } }
      RUBY
      assert_equal [2, 200, 200, 207, 200], calls.values_at("Shop.sell", "block in Shop.sell", "Shop#item", "String#mark", "block in String#mark")
    end

    def test_objects_of_boxes
      run_boxed(<<~'RUBY')
        follow { boxes.each { |box| box::Shop.sell(100) }; 5.times { Outside.new } }
      RUBY
      assert_balanced(segment)
      assert_equal 5, by_line[[6, "Outside"]]
      boxed = allocations.rows.select { |row| row.path.end_with?("boxed.rb") }.to_h { |row| [[row.line, row[:class]], row.count] }
      assert_equal [200, 200], [boxed[[4, "Shop::Item"]], boxed[[3, "Shop"]]], boxed.inspect
      assert_operator boxed[[8, "Array"]], :>=, 200, boxed.inspect
    end

    def test_a_recording_started_inside_a_box
      run_boxed(<<~'RUBY')
        box = Ruby::Box.new
        box.require("pitwall")
        box.eval('Pitwall.label(kind: "boxed") { Pitwall.profile(record: "a.pit") { 3_000.times { |i| i.to_s * 200 } } }')
        record("b.pit") { box.eval('3_000.times { |i| i.to_s * 200 }') }
      RUBY
      %w[a.pit b.pit].each { |name| assert_sane(segment(name)) }
    end

    def test_system_calls_of_boxes
      run_boxed(<<~'RUBY')
        start(mode: "none", collectors: { "syscalls" => { "stacks" => "1" } })
        boxes.each { |box| 4.times { box::Shop.new.look } }
        stop
      RUBY
      found = Hash.new(0)
      segment.each_syscall { |call| found[[segment.frame(call.node).name, segment.lines[call.node]]] += 1 if call.path == "/" }
      assert_equal 8, found.values.sum, found.inspect
    end
  end

  # --- Ractors ---

  VALUE = "def value(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take\n"

  if defined?(Ractor::Port)
    # Every Ractor's objects are told, one at a time.
    def test_objects_of_ractors_are_counted
      run_program(<<~'RUBY', options: ["-W0"])
        Thing = Class.new
        def make(n) = n.times { Thing.new }
        follow("a.pit", { "stacks" => "1" }) do
          ractors = Array.new(4) { Ractor.new { make(10_000); 200.times { |i| Class.new.new }; :done } }
          make(10_000)
          ractors.each(&:value)
        end
      RUBY
      assert_balanced(segment)
      assert_equal [50_000, []], [by_line[[2, "Thing"]], allocations.losses]
    end

    def test_ports
      @settings = { mode: "signal" }
      run_program(<<~'RUBY', options: ["-W0"])
        def answer(port) = 50.times { |i| port << [i, "x" * 20] }
        record do
          port = Ractor::Port.new
          ractor = Ractor.new(port) { |p| answer(p); sleep 0.1; :done }
          50.times { port.receive }
          ractor.join
        end
      RUBY
      assert_sane(segment)
      assert_operator methods_of(segment)["Ractor#join"].total, :>, 50_000_000
    end

    def test_a_trace_is_of_its_own_ractor
      return pass unless KNOWN
      run_program(<<~'RUBY', options: ["-W0"])
        def leaf = Object.new
        def work(n) = n.times { leaf }
        Pitwall.trace(record: "a.pit", bytes: true) do
          ractors = Array.new(2) { Ractor.new { work(20_000) } }
          work(20_000)
          ractors.each(&:value)
        end
      RUBY
      assert_equal [1, 20_000], calls.values_at("Object#work", "Object#leaf")
      rows = Pitwall::Analyse::Flat.rows(Pitwall::Analyse::CallTreeBuilder.build([segment], weights: %i[objects]), :objects)
      assert_includes 20_000..21_000, rows.find { |row| row.method.name == "Object#work" }.total
    end
  end

  # --- names ---

  # What the core wrote in Ruby or moved to C, and blocks without named parameters.
  def test_names_of_what_the_core_has_anew
    run_program(<<~'RUBY', options: ["-W0"])
      Spot = Data.define(:x) do
        def slow = burn(0.02)
      end
      def by_it = [0.02].each { burn(it) }
      def in_set = Set[1].each { burn(0.02) }
      def tapped = 1.tap { burn(0.02) }
      def looped = loop { break burn(0.02) }
      record { by_it; in_set; tapped; looped; Spot.new(x: 1).slow }
    RUBY
    ["Spot#slow", "block in Object#by_it", "Set#each", "block in Object#in_set", "Kernel#tap", "Kernel#loop"].each { |name| assert_sampled(name, segment) }
  end if RUBY_VERSION >= "4"

  # --- what objects have ---

  # Since 4.0 instance variables of what is no plain object are an object of the VM's own, counted as such.
  def test_bytes_are_those_that_ruby_tells
    out = run_program(<<~'RUBY', options: ["-W0"])
      require "objspace"
      class Small; def initialize = @a = 1; end
      class Large; def initialize = 30.times { |i| instance_variable_set(:"@v#{i}", i) }; end
      class Motley; def initialize(n) = instance_variable_set(:"@x#{n}", n); end
      class Text < String; def initialize(text) = (super; @tag = 1); end
      KINDS = [
        -> { Small.new },
        -> { Large.new },
        ->(n = (@n = @n.to_i + 1)) { Motley.new(n) },
        -> { Text.new("t" * 100) },
        -> { Set.new(1..100) },
        -> { Set[1] }
      ]
      KINDS.each { |kind| 100.times { kind.call } }
      kept = []
      follow { KINDS.each { |kind| kept << Array.new(50) { kind.call } } }
      kept.each { |objects| puts "#{objects[0].class} #{objects.sum { |object| ObjectSpace.memsize_of(object) }}" }
    RUBY
    told = out.lines.map(&:split).group_by(&:first).transform_values { |rows| rows.sum { |row| row[1].to_i } }
    ours = allocations.rows.group_by { |row| row[:class] }
    told.each { |name, bytes| assert_equal [50 * (name == "Set" ? 2 : 1), bytes], [ours[name].sum(&:retained), ours[name].sum(&:retained_bytes)], name }
  end if RUBY_VERSION >= "4"

  # A Set is data of Ruby's own from 4.0 on: what it has had is known when it is freed as well.
  def test_bytes_of_sets_that_are_freed
    out = run_program(<<~'RUBY', options: ["-W0"])
      require "objspace"
      def make = 100.times { Set.new(1..100) }
      make
      follow { make; GC.start }
      puts ObjectSpace.memsize_of(Set.new(1..100))
    RUBY
    set = allocations.rows.find { |row| row[:class] == "Set" }
    assert_equal [100, 100 * out.to_i], [set.count, set.bytes]
  end if RUBY_VERSION >= "4"
end
