# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/experiment"

# The duration of a case: its budget, or longer for the fewest pairs that give a verdict.
# The test's clock advances only with pairs.
class CaseRunTest < Minitest::Test
  Settings = Struct.new(:budget, :max_blocks, keyword_init: true)

  # Blocks that fail: they take time but give no samples.
  class Blocks
    attr_reader :now, :done, :block_ns

    def initialize(expected_ns, taken_ns)
      @block_ns = expected_ns
      @taken_ns = taken_ns
      @now = @done = 0
    end

    def run
      @done += 1
      @now += @taken_ns
      nil
    end
  end

  # Number of pairs, from the expected and the real duration of a pair in seconds.
  def pairs(expected, taken, budget: 40, **settings)
    blocks = Blocks.new(expected * 1e9, taken * 1e9)
    run = Class.new(Pitwall::Experiment::Compare.const_get(:CaseRun)) { define_method(:clock_ns) { blocks.now } }
    run = run.new(blocks, nil, Settings.new(budget: budget, **settings), sides: %w[a b])
    @planned = run.planned
    run.each_block { flunk }
    blocks.done
  end

  def test_the_budget_holds_where_it_holds_the_fewest_pairs
    assert_equal [40, 40], [pairs(1, 1), @planned]
    assert_equal 20, pairs(1, 2)
  end

  def test_the_fewest_pairs_may_take_three_times_as_long
    assert_equal [8, 9], [pairs(8.6, 10), @planned] # 80 s; the nine that were expected would have taken 77
    assert_equal 8, pairs(4, 14)
    assert_equal 4, pairs(8.6, 30) # then 120 s are over
    assert_equal 3, pairs(8.6, 30, max_blocks: 3)
    error = assert_raises(Pitwall::Bench::Failed) { pairs(20, 20) }
    assert_equal({ budget: 180 }, error.advice)
  end
end
