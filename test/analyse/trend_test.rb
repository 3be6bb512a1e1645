# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"

class TrendTest < Minitest::Test
  Trend = Pitwall::Analyse::Trend

  def exact(values) = values.map { |value| [value, value] }

  # All orders, counted one by one.
  def test_the_distribution_is_that_of_all_orders
    (2..6).each do |n|
      scores = (1..n).to_a.permutation.map { |values| Trend.score(exact(values)) }
      scores.uniq.select(&:positive?).each do |score|
        values = (1..n).to_a.permutation.find { |order| Trend.score(exact(order)) == score }
        assert_in_delta scores.count { |other| other >= score }.fdiv(scores.size),
                        Trend.rise_probability(exact(values)), 1e-12, "#{n} values, score #{score}"
      end
    end
  end

  def test_the_approximation_follows_the_exact_distribution
    [40, 80, 160, 200].each do |score|
      n = 40
      deviation = Math.sqrt(n * (n - 1) * ((2 * n) + 5) / 18.0)
      normal = 1 - Pitwall::Analyse::Statistics.normal_cdf((score - 1) / deviation)
      assert_in_delta 1, normal / Trend.send(:exact_probability, n, score), 0.05, "score #{score}"
    end
    noise = Array.new(200) { |at| Random.new(at).rand }
    assert_operator Trend.rise_probability(exact(noise)), :>, 0.01
    assert_operator Trend.rise_probability(exact((1..100).to_a)), :<, 1e-12
  end

  def test_no_rise_and_falls
    assert_equal 1.0, Trend.rise_probability(exact([5, 5, 5, 5]))
    assert_equal 1.0, Trend.rise_probability(exact([4, 3, 2, 1]))
    assert_equal 1.0, Trend.rise_probability([])
  end

  # Wider bounds remove pairs, and never add any.
  def test_bounds_that_meet_tell_nothing
    rising = (1..10).map { |value| [value * 10, value * 10] }
    wide = rising.map { |low, _| [low, low + 25] }
    assert_equal 45, Trend.score(rising)
    assert_equal 28, Trend.score(wide)
    assert_operator Trend.rise_probability(wide), :>, Trend.rise_probability(rising)
    assert_equal 0, Trend.score(rising.map { |_, high| [0, high] })
    random = Random.new(7)
    50.times do
      bounds = Array.new(12) { low = random.rand(100); [low, low + random.rand(40)] }
      inside = bounds.map { |low, high| Array.new(2, low + random.rand(high - low + 1)) }
      assert_operator Trend.score(bounds.map { |low, high| [-high, -low] }), :==, -Trend.score(bounds)
      assert_operator Trend.score(bounds).clamp(0, nil), :<=, Trend.score(inside) + 66
    end
  end

  def test_slope
    times = (0..9).to_a
    slope = Trend.slope(times, times.map { |time| (3 * time) + 5 })
    assert_equal [3.0, 3.0, 3.0], [slope.point, slope.low, slope.high]
    # One outlier changes the slope only a little.
    values = times.map { |time| time == 4 ? 1000 : 3 * time }
    slope = Trend.slope(times, values)
    assert_in_delta 3, slope.point, 0.5
    assert_operator slope.low, :<=, 3
    assert_operator slope.high, :>=, 3
    assert_nil Trend.slope([1], [2]).point
    assert_nil Trend.slope([1, 1], [2, 3]).point
    two = Trend.slope([1, 2], [2, 4])
    assert_equal [2.0, nil, nil], [two.point, two.low, two.high]
  end
end
