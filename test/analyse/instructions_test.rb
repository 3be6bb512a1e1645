# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"

class InstructionsTest < Minitest::Test
  def effect(a, b) = Pitwall::Analyse::Instructions.effect(a, b, name: "x", base: "A", side: "B")

  def test_three_nearly_equal_counts_decide_what_clocks_cannot
    found = effect([1_000_000.0, 1_000_030.0, 999_980.0], [1_005_000.0, 1_005_010.0, 1_005_030.0])
    assert_equal :more, found.verdict
    assert found.below_margin
    assert_in_delta 1.005, found.ratio.point, 0.0001
    assert_operator found.ratio.low, :>, 1
  end

  def test_swapping_the_sides_turns_the_verdict_around
    one = effect([100.0, 101.0, 100.5], [120.0, 121.0, 119.0])
    other = effect([120.0, 121.0, 119.0], [100.0, 101.0, 100.5])
    assert_equal %i[more fewer], [one.verdict, other.verdict]
    assert_in_delta 1, one.ratio.point * other.ratio.point, 1e-12
  end

  def test_the_same
    assert_equal :same, effect([1000.0, 1000.1, 999.9], [1000.0, 999.9, 1000.1]).verdict
    assert_equal :undecided, effect([1000.0, 1100.0, 900.0], [1010.0, 950.0, 1090.0]).verdict
  end

  def test_what_was_not_counted_is_not_judged
    [[[], []], [[1.0], [2.0]], [[1.0, 0.0], [1.0, 1.0]], [[1.0, Float::NAN], [1.0, 1.0]]].each do |a, b|
      found = effect(a, b)
      assert_equal :undecided, found.verdict
      assert_match(/too few/, found.reason)
    end
  end

  # An iteration may retain nothing. By chance the count may even be negative.
  def test_counts_around_zero_are_told_apart_by_their_difference
    names = { name: "x", base: "A", side: "B", metric: "retained" }
    judge = ->(a, b) { Pitwall::Analyse::Instructions.effect(a, b, **names) }
    fixed = judge.call([1.0, 1.01, 1.0], [0.0, 0.01, -0.01])
    assert_equal [:fewer, 1.0, 0.0, nil, "count"], [fixed.verdict, fixed.a, fixed.b, fixed.ratio.point, fixed.unit]
    assert_equal :more, judge.call([0.0, 0.01, -0.01], [1.0, 1.01, 1.0]).verdict
    noise = judge.call([0.0, 0.01, -0.01], [0.01, 0.0, 0.02])
    assert_equal :undecided, noise.verdict
    assert_match(/differ too much/, noise.reason)
  end
end
