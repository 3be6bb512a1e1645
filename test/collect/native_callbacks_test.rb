# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_program"

# Where Ruby and C call each other in every way: between which frames each native frame is.
class NativeCallbacksTest < Minitest::Test
  include NativeProgram

  TIMES = ["Integer#times", "block (2 levels) in <main>"].freeze
  LEAF = ["Known.leaf", "c_leaf", "burn_in_leaf"].freeze

  # One recording of all: each way has a method of its own, by whose name its stacks are found.
  WAYS = {
    "sort" => ["Known.sort { Known.leaf }", ["Known.sort", "c_sort", "c_compare", :block, *LEAF]],
    "protect" => ["Known.protect { Known.leaf; raise 'no' }", ["Known.protect", "c_protect", "c_protected", :block, *LEAF]],
    "ensure" => ["Known.ensure { Known.leaf }", ["Known.ensure", "c_ensure", "c_protected", :block, *LEAF]],
    "swap" => ["Known.swap", ["Known.swap", "c_swapped", "burn_in_leaf"]],
    "alternate" => ["Known.alternate", ["Known.alternate", "c_alternate", "c_handler", "burn_in_handler"]],
    "each" => ["[1].each { Known.leaf }", ["Array#each", :block, *LEAF]],
    "sort_by" => ["[2, 1].sort_by { |i| Known.leaf; i }",
                  ["Enumerable#sort_by", "Array#each", "Enumerable#sort_by", :block, *LEAF]], # C's block has a frame
    "missing" => ["Missing.new.nothing { Known.leaf }", ["Missing#method_missing", :block, *LEAF]],
    "defined" => ["Missing.new.defined", ["block in <class:Missing>", *LEAF]],
    "send" => ["Known.send(:outer) { Known.leaf }", ["Known.outer", "c_outer", "c_inner", :block, *LEAF]],
    "thrown" => ["catch(:done) { Known.outer { Known.leaf; throw :done } }",
                 ["Kernel#catch", :block, "Known.outer", "c_outer", "c_inner", :block, *LEAF]],
    "bound" => ["Known.method(:leaf).to_proc.call", [*LEAF]]
  }.freeze

  DEFINITIONS = <<~RUBY
    class Missing
      def method_missing(name) = yield
      def respond_to_missing?(*) = true
      define_method(:defined) { Known.leaf }
    end
  RUBY

  def test_calls_and_callbacks
    methods = WAYS.map { |name, (source, _)| "def way_#{name}() #{source} end\n" }.join
    calls = WAYS.keys.map { |name| "12.times { way_#{name} rescue nil }" }.join("; ")
    run_program("require #{@known.inspect}\n#{DEFINITIONS}#{methods}\nrecord { #{calls} }")
    found = stacks(segment)
    WAYS.each do |name, (_, expected)|
      mine = found.select { |path, _| path.any? { |frame| frame.name.end_with?("#way_#{name}") } }
      burning = mine.select { |path, _| path.last.name.match?(/\Aburn_in_(leaf|handler)\z/) }
      assert_operator burning.each_value.sum, :>, 0, "#{name}: no sample"
      assert_equal [expected], burning.keys.map { |path| below_way(path, name) }.uniq, name
    end
    assert_equal segment.stat("captures"), segment.stat("native_stacks")
  end

  # Ruby and known frames below the way's method. Ways of calling that Ruby versions show differently are left out.
  def below_way(path, name)
    names = shown(path).map { |one| one.sub(/ \(program.rb:\d+\)\z/, "") }
    below = names.drop(names.index { |one| one.end_with?("#way_#{name}") } + 1)
    below = below.map { |one| one.match?(/\Ablock .*in Object#way_#{name}\z/) ? :block : one }
    below - ["Method#call", "Proc#call", "Method#to_proc", "BasicObject#__send__", "Kernel#send", "c_swap"]
  end

  # How many percent of the stacks may be joined by guess. Compiled code enters and leaves blocks without a function of
  # the interpreter's own. ASAN replaces functions of libc: one run had 1 guess in 250 stacks.
  def percent_guessed
    return 5 if ENV["TEST_RUBYOPT"].to_s.include?("jit")

    ENV.key?("PITWALL_ASAN") ? 1 : 0
  end

  # A lazy enumerator's block runs in a fiber of its own: the fiber's stack begins there.
  def test_enumerators_and_lazy_ones
    run_program(<<~RUBY)
      require #{@known.inspect}
      record do
        10.times { each = [1].each; each.next }
        lazy = (1..20).lazy.map { |i| Known.leaf; i }.select(&:even?)
        made = Enumerator.new { |to| 10.times { Known.outer { Known.leaf }; to << 1 } }
        4.times { lazy.next }
        4.times { made.next }
      end
    RUBY
    found = stacks(segment).keys.select { |path| path.last.name == "burn_in_leaf" }.map { |path| shown(path) }
    assert_equal LEAF, found.map { |names| names.last(3) }.uniq.first
    outer = found.select { |names| names.include?("c_outer") }
    refute_empty outer
    outer.each { |names| assert_equal ["Known.outer", "c_outer", "c_inner"], names[names.index("Known.outer"), 3] }
    refute_empty found.select { |names| names.include?("Enumerator::Lazy#map") || names.any? { |name| name.include?("block") } }
    assert_equal 0, segment.stat("native_lost")
    assert_operator segment.stat("native_guessed"), :<=, segment.stat("native_stacks") * percent_guessed / 100
  end
end
