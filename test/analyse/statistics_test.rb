# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../oracle/statistics"
require_relative "../oracle/trial"
require "pitwall/analyse/statistics/statistics"

class StatisticsTest < Minitest::Test
  include Pitwall::Analyse

  # Values of Abramowitz and Stegun's table 26.5, and of Wichura (1988).
  NORMAL = { 0.5 => 0.0, 0.25 => -0.6744897501960817, 0.025 => -1.959963984540054, 0.005 => -2.575829303548901,
             0.001 => -3.090232306167814, 1e-13 => -7.348796102800065, 1e-20 => -9.262340089798408 }.freeze

  def test_normal_quantiles
    NORMAL.each do |probability, value|
      assert_in_delta value, Statistics.normal_quantile(probability), 1e-12
      assert_in_delta(-value, Statistics.normal_quantile(1 - probability), 1e-12) if probability > 0.01
      assert_in_epsilon probability, Statistics.normal_cdf(value), 1e-11
    end
  end

  def test_ends_and_nonsense
    assert_equal(-Float::INFINITY, Statistics.normal_quantile(0))
    assert_equal Float::INFINITY, Statistics.student_quantile(1, 3)
    assert_equal 1.0, Statistics.student_cdf(Float::INFINITY, 3)
    assert_equal 0.0, Statistics.student_cdf(-Float::INFINITY, 3)
    [-0.1, 1.1, Float::NAN].each do |probability|
      assert_raises(ArgumentError) { Statistics.normal_quantile(probability) }
    end
    assert_raises(ArgumentError) { Statistics.median([]) }
  end

  def test_student_is_the_integral_of_its_density
    [1, 2, 3, 7, 12, 30, 120, 500].each do |degrees|
      [-0.4, -1.0, -2.2, -5.0, -9.0].each do |value|
        expected = Oracle::Statistics.student_tail(value, degrees)
        assert_in_epsilon expected, Statistics.student_cdf(value, degrees), 1e-8, "#{value} with #{degrees}"
        assert_in_delta 1, Statistics.student_cdf(value, degrees) + Statistics.student_cdf(-value, degrees), 1e-14
      end
      assert_in_delta 0.5, Statistics.student_cdf(0.0, degrees), 1e-15
    end
  end

  def test_student_quantiles_undo_the_distribution_far_out
    [1, 2, 3, 7, 12, 30, 120, 500].each do |degrees|
      [1e-13, 6.2e-12, 1e-6, 0.005, 0.1, 0.3, 0.499, 0.6, 0.995].each do |probability|
        value = Statistics.student_quantile(probability, degrees)
        assert_in_epsilon probability, Statistics.student_cdf(value, degrees), 1e-11, "#{probability} with #{degrees}"
      end
    end
    assert_in_delta(-1 / Math.tan(Math::PI * 1e-13), Statistics.student_quantile(1e-13, 1), 1) # Cauchy's
    assert_equal 0.0, Statistics.student_quantile(0.5, 4)
  end

  def test_student_nears_the_normal
    NORMAL.each do |probability, value|
      assert_in_delta value, Statistics.student_quantile(probability, 10_000_000), 1e-3
    end
  end

  def test_quantiles_and_fences
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    assert_equal 3.5, Statistics.median(values)
    assert_equal [1.0, 9.0, 1.75, 5.25], [0, 1, 0.25, 0.75].map { |fraction| Statistics.quantile(values, fraction) }
    assert_equal [1.75 - 10.5, 5.25 + 10.5], Statistics.far_out_fences(values)
    assert_equal [19], Statistics.far_out(values + [19])
    assert_empty Statistics.far_out([])
    assert_empty Statistics.far_out([1])
  end

  def test_trimmed_mean_and_its_error
    random = Random.new(1)
    [2, 3, 9, 10, 11, 19, 20, 47].each do |size|
      [0.0, 0.1, 0.2].each do |trim|
        values = Array.new(size) { Oracle::Trial::Noise.normal(random) }
        point, error = Oracle::Statistics.yuen(values, trim)
        parts = Statistics.yuen(values, trim: trim)
        assert_in_delta point, parts.point, 1e-12
        assert_in_delta point, Statistics.trimmed_mean(values, trim: trim), 1e-12
        assert_in_delta error, parts.standard_error, 1e-12
        assert_equal [size - 2 * (trim * size).floor - 1, size], [parts.degrees, parts.n]
      end
    end
  end

  def test_an_outlier_in_ten_moves_nothing
    values = (1..20).to_a
    assert_equal Statistics.yuen(values), Statistics.yuen(values.map { |value| value == 20 ? 1e9 : value })
  end

  def test_students_interval
    estimate = Statistics.interval([1.0, 2.0, 3.0, 4.0, 5.0], level: 0.95, trim: 0)
    assert_in_delta 3.0, estimate.point, 1e-12
    assert_in_delta 3 - 2.776445105197793 * Math.sqrt(0.5), estimate.low, 1e-9
    assert_in_delta 3 + 2.776445105197793 * Math.sqrt(0.5), estimate.high, 1e-9
    assert_equal [0.95, 5], [estimate.level, estimate.n]
    assert_equal [7.0, nil, nil], Statistics.interval([7], level: 0.95).to_a.first(3)
  end

  def test_the_interval_of_the_median_is_the_narrowest_that_reaches_its_level
    (2..40).each do |n|
      [0.9, 0.95, 0.99].each do |level|
        estimate = Statistics.median_interval((1..n).to_a.reverse, level: level)
        rank = estimate.low.to_i
        assert_equal n + 1 - rank, estimate.high
        reached = Oracle::Statistics.order_coverage(n, rank)
        if reached < level
          assert_equal 1, rank
          assert_in_delta reached, estimate.level, 1e-12
        else
          assert_equal level, estimate.level
          assert_operator Oracle::Statistics.order_coverage(n, rank + 1), :<, level if 2 * rank + 1 < n
        end
      end
    end
    assert_equal [4.0, nil, nil], Statistics.median_interval([4], level: 0.95).to_a.first(3)
  end

  def test_holm
    assert_equal [0.01 / 3, 0.01, 0.005], Statistics.holm([0.001, 0.5, 0.004], alpha: 0.01)
    assert_equal [0.01 / 3] * 3, Statistics.holm([0.004, 0.5, 0.0041], alpha: 0.01)
    assert_empty Statistics.holm([], alpha: 0.01)
  end

  # Rejecting p <= share is the same as rejecting where the maximum over smaller values of (m − rank) p is <= alpha.
  def test_holm_against_adjusted_values
    random = Random.new(4)
    200.times do
      values = Array.new(random.rand(1..8)) { random.rand**4 }
      adjusted = values.map do |value|
        values.select { |other| other <= value }.map { |other| values.count { |any| any >= other } * other }.max
      end
      shares = Statistics.holm(values, alpha: 0.05)
      assert_equal adjusted.map { |value| value <= 0.05 }, values.zip(shares).map { |value, share| value <= share }
    end
  end

  def test_estimates_through_functions
    estimate = Estimate.new(2.0, 1.0, 4.0, 0.99, 8)
    assert_equal Estimate.new(0.5, 0.25, 1.0, 0.99, 8), estimate.map { |value| 1 / value }
    assert_equal [Math.exp(2), Math.exp(1), nil],
                 Estimate.new(2.0, 1.0, 1000.0, 0.99, 8).map { |value| Math.exp(value) }.to_a.first(3)
    assert_equal [nil, nil, nil], Estimate.new(nil, nil, nil, 0.99, 1).map { |value| value * 2 }.to_a.first(3)
    assert_equal [true, false, true], [estimate.interval?, estimate.exact?, Estimate.new(1.0, 1.0, 1.0, 1.0, 1).exact?]
  end
end
