# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse/statistics/estimate"
require "pitwall/show"
require "pitwall/show/terminal/figures"

class FiguresTest < Minitest::Test
  Figures = Pitwall::Show::Figures

  def test_values
    { [12_345_678.9, "ns"] => "12.35 ms", [999.96, "ns"] => "1.000 µs", [0.5, "ns"] => "0.5000 ns", [0, "ns"] => "0 ns",
      [7.2e12, "ns"] => "120 min", [1204.0, "count"] => "1,204",
      [0.0333, "count"] => "0.03330", [2.6e-7, "count"] => "2.6e-7", [1.5e10, "count"] => "15.00 G",
      [40.0, "bytes"] => "40 B", [33.25, "bytes"] => "33.25 B", [2048, "bytes"] => "2.00 KiB",
      [nil, "ns"] => "–", [Float::NAN, "count"] => "–",
      [Float::INFINITY, "ns"] => "–" }.each { |arguments, text| assert_equal text, Figures.value(*arguments) }
  end

  def test_changes
    { [1.0213, 1.0141, 1.0284] => ["+2.1%", "+1.4% … +2.8%"], [0.5, 0.4, 0.6] => ["×0.500", "×0.400 … ×0.600"],
      [1.3, 0.9, 1.9] => ["+30%", "−10% … +90%"], [0.0, 0.0, 0.0] => ["to 0", "×0 … ×0"],
      [1.00001, 1.000004, 1.00002] => ["+0.0010%", "+0.0004% … +0.0020%"],
      [1.004983, 1.004983, 1.004983] => ["+0.5%", "+0.5% … +0.5%"], [123.4, 120, 130.6] => ["×123", "×120 … ×131"],
      [1.05, nil, nil] => ["–", "–"], [nil, nil, nil] => ["–", "–"] }.each do |parts, texts|
      estimate = Pitwall::Analyse::Estimate.new(*parts, 0.99, 10)
      assert_equal texts, [Figures.change(estimate), Figures.range(estimate)]
    end
  end

  # A bound that is not 1 is never printed as 1.
  def test_a_bound_away_from_one_is_never_printed_as_nothing
    random = Random.new(7)
    2_000.times do
      low = 1 + 10**(-4 * random.rand)
      low = 2 - low if random.rand < 0.5
      high = low * (1 + random.rand)
      next if high.between?(0.99999, 1.00001)

      text = Figures.range(Pitwall::Analyse::Estimate.new(Math.sqrt(low * high), low, high, 0.99, 10))
      refute_match(/[+−]0(\.0+)?%/, text, [low, high].inspect)
    end
  end

  def test_rates_and_doubt
    assert_equal ["81.30 /s", "999.8 /s", "1.214 M/s", "–"],
                 [81.3, 999.8, 1_214_000.0, nil].map { |number| Figures.rate(number) }
    estimates = [[100, 99.56, 100.44], [100, 88, 112], [100, 90, nil]].map do |parts|
      Pitwall::Analyse::Estimate.new(*parts, 0.99, 9)
    end
    assert_equal ["±0.44%", "±12%", "–"], estimates.map { |estimate| Figures.doubt(estimate) }
  end
end
