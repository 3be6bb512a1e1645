# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_program"

# Native frames beside Ruby frames: a C extension with known functions says what every sample must be.
class NativeTest < Minitest::Test
  include NativeProgram

  def test_a_block_called_from_c_is_below_the_c_functions_that_called_it
    found = known_stacks("20.times { Known.outer { Known.leaf } }", leaf: "burn_in_leaf")
    assert_equal [["Integer#times", "block (2 levels) in <main>", "Known.outer", "c_outer", "c_inner",
                   "block (3 levels) in <main>", "Known.leaf", "c_leaf", "burn_in_leaf"]], found
    assert_equal @segment.stat("native_stacks"), @segment.stat("captures")
    assert_equal 0, @segment.stat("native_lost")
  end

  def test_before_and_after_the_block
    source = "20.times { Known.before { Known.leaf } }"
    above = ["Integer#times", "block (2 levels) in <main>", "Known.before", "c_before"]
    %w[burn_in_before burn_in_after].each do |leaf|
      assert_equal [[*above, leaf]], known_stacks(source, leaf: leaf)
    end
    assert_equal [[*above, "c_inner", "block (3 levels) in <main>", "Known.leaf", "c_leaf", "burn_in_leaf"]],
                 known_stacks(source, leaf: "burn_in_leaf")
  end

  NESTED = <<~RUBY
    class Called
      def initialize(depth) = @depth = depth
      def called = @depth.zero? ? Known.leaf : Known.outer { Known.call(Called.new(@depth - 1)) }
    end
  RUBY

  def test_deeply_nested_calls
    found = known_stacks("10.times { Known.call(Called.new(30)) }", leaf: "burn_in_leaf", definitions: NESTED)
    called = ["Known.call", "c_call", "Called#called"]
    outer = ["Known.outer", "c_outer", "c_inner", "block in Called#called"]
    assert_equal [["Integer#times", "block (2 levels) in <main>", *([called, outer] * 30).flatten, *called,
                   "Known.leaf", "c_leaf", "burn_in_leaf"]], found
  end

  def test_c_functions_that_c_functions_call
    found = known_stacks("20.times { Known.call_c }", leaf: "burn_in_leaf")
    assert_equal [["Integer#times", "block (2 levels) in <main>", "Known.call_c", "c_call_c", "Known.leaf", "c_leaf",
                   "burn_in_leaf"]], found
  end

  # Then no native frame is the C function's own.
  def test_a_c_function_that_ends_in_a_jump
    found = known_stacks("20.times { Known.jump }", leaf: "burn_in_jump")
    assert_equal [["Integer#times", "block (2 levels) in <main>", "Known.jump", "burn_in_jump"]], found
  end

  def test_fibers_and_threads_have_stacks_of_their_own
    source = "Thread.new { 10.times { Fiber.new { Known.outer { Known.leaf } }.resume } }.join"
    assert_equal [["Known.outer", "c_outer", "c_inner", "Known.leaf", "c_leaf", "burn_in_leaf"]],
                 known_stacks_of_any(source).map { |names| names.grep_v(/\Ablock/) }
    assert_equal 0, @segment.stat("native_lost")
  end

  # An exception leaves frames of C code without a return.
  def test_exceptions_through_c_code
    found = known_stacks("20.times { begin; Known.outer { Known.leaf; raise 'no' }; rescue; Known.leaf; end }",
                         leaf: "burn_in_leaf")
    inside = ["Integer#times", "block (2 levels) in <main>", "Known.outer", "c_outer", "c_inner",
              "block (3 levels) in <main>", "Known.leaf", "c_leaf", "burn_in_leaf"]
    after = ["Integer#times", "block (2 levels) in <main>", "rescue in block (2 levels) in <main>", "Known.leaf",
             "c_leaf", "burn_in_leaf"]
    assert_equal [inside, after].sort, found.sort
  end

  # A collection's own functions are below "(marking)" or "(sweeping)", and their callers above.
  def test_collections
    run_program(<<~RUBY)
      kept = Array.new(200_000) { "x" * 50 }
      record do
        limit = cpu + 1
        Array.new(1000) { Object.new } while cpu < limit
        GC.start while cpu < limit + 0.3
      end
    RUBY
    found = stacks(segment).select { |path, _| path.any? { |frame| frame.kind == 2 } }
    assert_operator found.each_value.sum, :>, 100
    native = found.select { |path, _| path.last.kind == 3 || path[-2].kind == 3 }
    assert_operator native.each_value.sum, :>, found.each_value.sum * 0.9
    native.each_key do |path|
      at = path.index { |frame| frame.kind == 2 }
      assert_equal 3, path[at - 1].kind, "no caller of the collector: #{path.map(&:name)}"
      assert_equal [3], path.drop(at + 1).map(&:kind).uniq if path.size > at + 1
      assert_equal 1, path.count { |frame| frame.kind == 2 }
    end
    assert_blackboxes(native.keys.flat_map { |path| path.drop(path.index { |frame| frame.kind == 2 } + 1) }.uniq)
  end

  # A black box of one of the collector's functions, or of all the collector does, has its total for its own.
  # @param functions [Array<Record::Frame>] of the collector
  def assert_blackboxes(functions)
    refute_empty functions
    tree = tree(segment)
    totals = tree.total_by_method(:wall)
    inside = tree.methods.each_index.select { |method| functions.any? { |frame| frame.name == tree.methods[method].name } }
    heaviest = inside.select { |method| tree.self_by_method(:wall)[method] < totals[method] }.max_by { |method| totals[method] }
    refute_nil heaviest, "no function of the collector calls another"
    [tree.methods[heaviest].name, "(marking)"].each do |name|
      numbers = Pitwall::Analyse::MethodMatch.find(tree.methods, name)
      folded = Pitwall::Analyse::Folding.blackbox(tree, numbers)
      assert_equal tree.total(:wall), folded.total(:wall)
      at = folded.methods.index { |method| method.name == name }
      assert_equal totals[tree.methods.index { |method| method.name == name }], folded.self_by_method(:wall)[at], name
      assert_equal folded.total_by_method(:wall)[at], folded.self_by_method(:wall)[at], name
    end
  end

  # Waiting threads show the functions in which they wait.
  def test_waits
    run_program("record { reader, = IO.pipe; Thread.new { reader.read }; Thread.new { sleep }; sleep 0.3 }")
    waiting = stacks_of_weight(segment).select { |path, _| path.any? { |frame| frame.name.match?(/\A(IO#read|Kernel#sleep)\z/) } }
    refute_empty waiting
    waiting.each_key { |path| assert_equal 3, path.last.kind, path.map(&:name).inspect }
  end

  # What runs without the GVL gets no signal. Its time counts for a frame that says so, below the function that gave it up.
  def test_c_code_without_the_gvl
    run_program(<<~RUBY)
      require "zlib"
      data = Random.bytes(500_000)
      record { limit = cpu + 0.3; Zlib.deflate(data) while cpu < limit }
    RUBY
    paths = stacks_of_weight(segment).keys.map { |path| path.map(&:name) }
    without = paths.select { |names| names.last == "(without the GVL)" }
    refute_empty without
    assert(without.any? { |names| names.include?("Zlib.deflate") && names.index("rb_nogvl") })
    refute(paths.any? { |names| names[0...-1].include?("(without the GVL)") })
  end

  # With native frames folded the stacks are those that a recording without native frames has.
  def test_folded_stacks_are_those_of_ruby
    source = "def inner = burn(0.01)\ndef outer = [1].each { inner }\n%s { 20.times { outer } }"
    run_program(format(source, "record('native.pit')"))
    run_program(format(source, "record('ruby.pit', native: false, mode: 'signal')")) # see doc/sampling.md, Short calls
    native, ruby = %w[native.pit ruby.pit].map { |name| Pitwall::Analyse::NativeFrames.fold(read(name).segments).first }
    names = [native, ruby].map do |one|
      one.parents.each_index.drop(1).map do |node|
        path = []
        (path.unshift(one.frame(node).name); node = one.parents[node]) while node.positive?
        path.drop_while { |name| name == "<main>" } # 3.1 has two
      end.select { |path| path.last == "Process.clock_gettime" }.uniq
    end
    refute_empty names.first
    assert_equal names.last, names.first
    assert_sane native
  end

  # Under ASAN it may take longer to walk such a stack than the usual interval of 1 ms. Then the program would only be
  # sampled, and never end.
  def test_a_very_deep_stack_is_cut_at_the_root
    run_program(<<~RUBY)
      def deep(n) = n.zero? ? burn(0.3) : [1].each { deep(n - 1) }
      record(interval_ns: 10_000_000) { deep(1500) }
    RUBY
    deepest = stacks(segment).keys.max_by(&:size)
    assert_equal "(stack cut here)", deepest.first.name
    assert_equal 4097, deepest.size
    assert_operator segment.stat("truncated"), :>, 0
  end

  def test_what_is_refused
    assert_equal "UsageError: native: true goes with mode signal only: leave out mode outside",
                 run_program('print problem { record(mode: "outside") {} }')
    assert_equal "UsageError: native 1: choose true or false", run_program("print problem { record(native: 1) {} }")
    run_program("record(mode: :auto) {}")
    assert_equal ["signal", "native frames were asked for"], [segment.header.mode, segment.header.mode_reason]
  end
end
