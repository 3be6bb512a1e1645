# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse/allocations/growth"
require "pitwall/analyse/compare/sweep"
require "pitwall/show"
require "pitwall/show/measured/growth_view"
require "pitwall/show/terminal/plain"
require "pitwall/show/terminal/plot"

class PlotViewsTest < Minitest::Test
  Plot = Pitwall::Show::Plot
  SIZES = [10, 30, 100, 300, 1_000, 3_000, 10_000].freeze

  def test_a_power_is_a_straight_line
    cells = places(lines([series { |n| 5.0 * n**2 }]), "●")
    slopes = cells.each_cons(2).map do |(row, column), (next_row, next_column)|
      (row - next_row).fdiv(next_column - column)
    end
    slopes.each { |slope| assert_in_delta slopes.sum / slopes.size, slope, 0.12 }
  end

  def test_axes_are_labelled
    text = lines([series { |n| 1_000.0 * n }]).join("\n")
    ["time (both axes logarithmic)", "100 µs ┤", "10 ms ┤", "10", "1,000", "10,000", "files"].each do |part|
      assert_includes text, part
    end
  end

  def test_the_widths_are_kept
    [40, 57, 80, 120, 200].each do |width|
      [true, false].each do |unicode|
        lines([series { |n| 5.0 * n**2 }, series("a name " * 30) { |n| 70.0 * n }], width: width,
              unicode: unicode).each do |line|
          assert_operator Pitwall::Show::Text.width(line), :<=, width, line
          refute_match(/\s\z/, line)
        end
      end
    end
  end

  def test_two_versions_have_different_signs_and_a_legend
    text = lines([series("main") { |n| 5.0 * n**2 }, series("dirty") { |n| 70.0 * n }]).join("\n")
    assert_includes text, "● main"
    assert_includes text, "○ dirty"
    assert_equal SIZES.size + 1, text.count("●") # the first is on top where they meet
    assert_operator text.count("○"), :>=, SIZES.size
  end

  def test_ascii_has_no_other_letters
    text = lines([series("main") { |n| 5.0 * n**2 }, series("dirty") { |n| 70.0 * n }],
                 unicode: false).join("\n").delete("µ")
    assert_predicate text, :ascii_only?
  end

  def test_zero_needs_other_axes
    text = lines([Plot::Series.new(points: [[0, 5e6], [100, 7e6], [200, 9e6]])]).join("\n")
    refute_includes text, "logarithmic"
    assert_equal 3, text.count("●")
  end

  def test_noise_does_not_fill_the_height
    rows = places(lines([series { |n| 1_000.0 + n % 7 }]), "●").map(&:first)
    assert_operator rows.minmax.then { |low, high| high - low }, :<=, 1
  end

  def test_nothing_is_plotted_of_one_size_or_of_what_is_no_number
    assert_empty lines([Plot::Series.new(points: [[10, 1.0], [10, 2.0]])])
    assert_empty lines([Plot::Series.new(points: [[10, nil], [20, Float::NAN], [30, 1.0]])])
  end

  def test_growth_shows_order_figures_and_speed_up
    main, dirty = fit { |n| 2_000 + 30.0 * n * n }, fit { |n| 2_500 + 90.0 * n }
    sweep = Pitwall::Analyse::Sweep.new(name: "join", parameter: "files", fit: dirty, base: main,
                                        against: Pitwall::Analyse::Growth.against(main, dirty), fit_name: "dirty",
                                        base_name: "main")
    [40, 80, 120].each do |width|
      lines = Pitwall::Show::GrowthView.new(width: width, palette: Pitwall::Show::Plain).lines(sweep)
      lines.each { |line| assert_operator Pitwall::Show::Text.width(line), :<=, width, line }
      text = lines.join("\n")
      ["quadratic", "linear", "10,000", "speed-up", "99% interval", "per item", "○ main"].each do |part|
        assert_includes text, part
      end
      assert_match(/3,3\d\d \(3,\d+ … 3,\d+\)/, text)
    end
  end

  def test_growth_that_can_not_be_told_is_said
    sweep = Pitwall::Analyse::Sweep.new(name: "join", parameter: nil,
                                        fit: Pitwall::Analyse::Growth.fit([{ n: 10, values: [1.0] },
                                                                           { n: 20, values: [2.0] }]))
    text = Pitwall::Show::GrowthView.new(width: 80, palette: Pitwall::Show::Plain).lines(sweep).join("\n")
    assert_includes text, "join: "
    assert_match(/^ +N +time/, text)
  end

  private

  def series(name = nil, &time) = Plot::Series.new(name: name, points: SIZES.map { |n| [n, time.(n)] },
                                                   curve: SIZES.map { |n| [n, time.(n)] })

  def fit(&time)
    random = Random.new(5)
    points = SIZES.map { |n| { n: n, values: Array.new(10) { time.(n) * (1 + 0.01 * (random.rand - 0.5)) } } }
    Pitwall::Analyse::Growth.fit(points)
  end

  def lines(series, width: 80, unicode: true) = Plot.new(width: width, palette: Pitwall::Show::Plain,
                                                         unicode: unicode).lines(series, x: "files", y: "time")

  # [row, column] of all signs, from left to right.
  def places(lines, sign)
    found = lines.each_with_index.filter_map { |line, row| [row, line.index(sign)] if line.include?(sign) }
    found.sort_by(&:last)
  end
end
