# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require_relative "../../benchmarks/support/change_point_quantiles"
require_relative "../../benchmarks/support/e_divisive"

class ChangePointsTest < Minitest::Test
  CHANGES = Pitwall::Analyse::ChangePoints

  # Normal noise of a relative size around a level.
  def noise(random, level, size, count)
    Array.new(count) do
      level * (1 + (size * Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)))
    end
  end

  def test_a_step_is_found_where_it_is
    random = Random.new(1)
    10.times do
      at = random.rand(20..80)
      values = noise(random, 100.0, 0.01, at) + noise(random, 103.0, 0.01, 100 - at)
      changes = CHANGES.of(values)
      assert_equal 1, changes.size
      assert_in_delta at, changes.first.at, 5
      assert_in_delta 1.03, changes.first.ratio, 0.01
      assert_operator changes.first.p_value, :<=, 0.01
    end
  end

  def test_changes_that_cancel_each_other_are_found
    random = Random.new(2)
    values = [100.0, 110.0, 100.0, 95.0].flat_map { |level| noise(random, level, 0.01, 30) }
    assert_equal [30, 60, 90], CHANGES.of(values).map(&:at)
  end

  # 100 series of permuted values: at alpha 0.01 more than 6 with a change have a probability below 0.0001.
  def test_few_series_without_a_change_have_one
    random = Random.new(3)
    wrong = 100.times.count { CHANGES.of(Array.new(60) { random.rand**4 }, margin: 0).any? }
    assert_operator wrong, :<=, 6
  end

  def test_a_monotone_function_changes_no_place
    random = Random.new(4)
    values = noise(random, 10.0, 0.02, 40) + noise(random, 11.0, 0.02, 40)
    places = CHANGES.of(values).map(&:at)
    assert_equal places, CHANGES.of(values.map { |value| Math.exp(value) }).map(&:at)
    assert_equal places.map { |at| 80 - at }, CHANGES.of(values.reverse).map(&:at)
  end

  def test_exact_counts
    assert_empty CHANGES.of([120] * 50)
    change = CHANGES.of([120] * 25 + [125] * 25).first
    assert_equal [25, 120.0, 125.0], [change.at, change.before, change.after]
    assert_empty CHANGES.of([1000] * 25 + [1001] * 25), "below the margin"
    assert_nil CHANGES.of([0] * 25 + [1] * 25).first.ratio
  end

  def test_short_series
    assert_empty CHANGES.of([])
    assert_empty CHANGES.of([1, 2] * 4 + [9])
    assert_equal [5], CHANGES.of([1.0, 1.1, 1.2, 1.3, 1.4, 2.0, 2.1, 2.2, 2.3, 2.4]).map(&:at)
  end

  # The slow definition of the statistic: the number of pairs in order, standardised.
  def test_the_statistic_by_its_definition
    random = Random.new(5)
    10.times do
      values = Array.new(24) { random.rand(8) }
      slow = (CHANGES::LEAST..(24 - CHANGES::LEAST)).map { |at| standardised(values, at) }.max
      assert_in_delta slow, CHANGES.best(values).first, 1e-9
    end
  end

  def standardised(values, at)
    size = values.size
    score = values.first(at).product(values.drop(at)).sum { |one, other| (other <=> one) / 2.0 }
    ties = values.tally.each_value.sum { |count| (count**3) - count }
    spread = at * (size - at) / 12.0 * (size + 1 - (ties / (size * (size - 1.0))))
    score.abs / Math.sqrt(spread)
  end

  # The table against permutations of other random numbers.
  def test_the_table_of_quantiles
    found = Benchmarks::ChangePointQuantiles.of(30, 1000, Random.new(6))
    { 0.2 => 0, 0.05 => 2 }.each { |alpha, at| assert_in_delta CHANGES.critical(30, alpha), found[at], 0.15 }
    assert_in_delta CHANGES.critical(30, 0.01), CHANGES.critical(31, 0.01), 0.05
    assert_equal [1.0, 0.001], [CHANGES.p_value(30, 1.0), CHANGES.p_value(30, 9.0)]
    assert_in_delta 0.01, CHANGES.p_value(200, CHANGES.critical(200, 0.01)), 1e-9
  end

  def test_beside_e_divisive
    random = Random.new(7)
    values = noise(random, 100.0, 0.01, 20) + noise(random, 104.0, 0.01, 20)
    assert_equal Benchmarks::EDivisive.of(values, random: random), CHANGES.of(values).map(&:at)
  end
end
