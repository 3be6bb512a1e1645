# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/show"
require "pitwall/show/terminal/distribution"
require "pitwall/show/terminal/plain"

class DistributionViewsTest < Minitest::Test
  Distribution = Pitwall::Show::Distribution
  A = Array.new(24) { |at| 10_000_000 + (at * 7 % 24) * 10_000 }
  B = A.map { |value| value + 200_000 }

  def test_both_sides_lie_on_one_axis
    first, second, scale = lines({ "main" => A, "dirty" => B })
    assert_operator first.index("┃"), :<, second.index("┃")
    assert_operator first.index(/[▁-█]/), :<, second.index(/[▁-█]/)
    assert_match(/\A +10\.00 ms +10\.43 ms\z/, scale)
    assert_includes first, "10.12 ms" # the median
    assert_equal first.rindex("│"), second.rindex("│")
  end

  def test_the_widths_are_kept
    [40, 63, 80, 120, 200].each do |width|
      lines({ "a very long name of a side, ruby 3.4.11 --yjit" => A, "日本語の枝" => B + [90_000_000] },
            width: width).each do |line|
        assert_operator Pitwall::Show::Text.width(line), :<=, width, line
      end
    end
  end

  def test_what_is_far_out_is_counted_and_flattens_nothing
    text = lines({ "main" => A + [55_000_000], "dirty" => B }).join("\n")
    assert_includes text, "main: 1 of 25 outside this axis: 55.00 ms"
    assert_match(/ 10\.43 ms$/, text)
  end

  def test_ascii
    text = lines({ "main" => A, "dirty" => B }, unicode: false).join("\n")
    assert_predicate text, :ascii_only?
    assert_equal 2, text.count("!")
  end

  def test_equal_values_and_single_ones
    first, scale = lines({ "main" => [5.0] * 9 })
    assert_equal 1, first.count("┃")
    assert_equal "5.000 ns", scale.strip
    assert_equal 2, lines({ "" => [7] }).size
  end

  def test_nothing_is_drawn_of_nothing
    assert_empty lines({})
    assert_empty lines({ "main" => [], "dirty" => [Float::NAN, Float::INFINITY] })
    assert_equal "", Distribution.new(width: 80, palette: Pitwall::Show::Plain).sparkline([], 10)
  end

  def test_a_sparkline_has_its_columns
    [1, 5, 24].each do |columns|
      assert_equal columns, Distribution.new(width: 80, palette: Pitwall::Show::Plain).sparkline(A, columns).size
    end
  end

  def test_labels_can_be_nothing_but_text
    text = lines({ "a\e[2Jb\n" => A, "x" => B }).join("\n")
    assert_includes text, "a\\e[2Jb\\n"
    refute_match(/\e/, text)
  end

  private

  def lines(series, width: 80, unicode: true)
    Distribution.new(width: width, palette: Pitwall::Show::Plain, unicode: unicode).lines(series, unit: "ns")
  end
end
