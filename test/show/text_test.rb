# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/show"

class TextTest < Minitest::Test
  include Pitwall::Show

  def test_durations_have_three_figures
    { 0 => "0 s", 7 => "7 ns", 999 => "999 ns", 1_000 => "1.00 µs", 12_345 => "12.3 µs", 999_600 => "1.00 ms",
      45_600_000 => "45.6 ms",
      1_234_000_000 => "1.23 s", 99_960_000_000 => "100 s", 750_000_000_000 => "12.5 min",
      30 * 3_600_000_000_000 => "30.0 h" }.each do |ns, text|
      assert_equal text, Units.duration(ns), ns
    end
  end

  def test_percentages
    assert_equal ["0.0%", "100%", "<0.1%", "33.3%", "0.0%"],
                 [[0, 5], [5, 5], [1, 100_000], [1, 3], [0, 0]].map { |part, whole| Units.percent(part, whole) }
  end

  def test_counts_and_bytes
    assert_equal %w[0 999 1,000 1,234,567], [0, 999, 1000, 1_234_567].map { |number| Units.count(number) }
    assert_equal ["12 B", "1.50 KiB", "8.00 GiB"], [12, 1536, 8 << 30].map { |number| Units.bytes(number) }
    assert_equal ["1 ms", "2.5 ms", "100 µs", "7 ns"],
                 [1_000_000, 2_500_000, 100_000, 7].map { |ns| Units.interval(ns) }
  end

  # A deep row of a tree keeps its name's end, and the line keeps its width.
  def test_a_table_cuts_deep_rows
    rows = [0, 3, 30].map do |depth|
      Table::Row.new(numbers: ["1.00 s"], name: "lib/shop/cart.rb", lead: "  " * depth, place: ["lib/shop.rb", 3])
    end
    [30, 60].each do |width|
      table = Table.new(heads: %w[self file], width: width, palette: Plain, location: Location.new, cut: :shorten_left)
      lines = table.lines(rows)
      assert_operator lines.map(&:size).max, :<=, width
      assert_match(/ …\s*…\S+rb\b/, lines.last)
      assert_match(%r{  lib/shop/cart\.rb }, lines[2]) if width == 60
    end
  end

  def test_names_are_cut_in_the_middle_and_keep_the_method
    name = "Shop::Checkout::Cart#total"
    assert_equal "Shop::Ch…t::Cart#total", Text.shorten(name, 22)
    (1..30).each do |columns|
      %i[shorten shorten_middle].each do |how|
        assert_operator Text.width(Text.public_send(how, name, columns)), :<=, columns
      end
    end
    assert_equal ["Shop::C…rt#total", name], [Text.shorten_middle(name, 16), Text.shorten_middle(name, Float::INFINITY)]
    (7..30).each { |columns| assert Text.shorten(name, columns).end_with?("#total") }
    (1..20).each { |columns| assert_operator Text.width(Text.shorten("Shop::カート#合計の計算", columns)), :<=, columns }
  end

  def test_nothing_reaches_the_terminal_as_a_command
    assert_equal "a\\e[2Jb\\nc", Text.safe("a\e[2Jb\nc")
    refute_match(/\p{Cc}|\u202e/, Text.safe("\u0000\u0007\u009b\u202e\r"))
  end

  def test_places_are_as_short_as_they_stay_clear
    location = Location.new("/srv/app")
    assert_equal "lib/a.rb:3", location.text("/srv/app/lib/a.rb", 3)
    assert_equal "/srv/apple/a.rb", location.text("/srv/apple/a.rb", 0)
    assert_equal "rack-3.1.8/lib/rack.rb:1", location.text("/usr/gems/rack-3.1.8/lib/rack.rb", 1)
    assert_equal "", location.text("", 5)
    assert_equal "…/models/cart.rb:3", location.fit("/srv/app/app/models/cart.rb", 3, 19)
    (0..40).each do |columns|
      assert_operator location.fit("/srv/app/app/models/shop/cart.rb", 30, columns).size, :<=, columns
    end
  end
end
