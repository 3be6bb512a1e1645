# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/cli"
require "pitwall/history"
require "sequel"
require "stringio"
require_relative "../support/browser"
require_relative "../support/history_files"

# The page of `pitwall history show`: charts draw, the table has the planted change, the search narrows.
class HistoryPageTest < Minitest::Test
  include Browser
  include HistoryFiles

  PICTURES = ENV["PITWALL_PICTURES"] # a folder, to look at
  NAME = "<img src=x onerror='ran=1'>"

  # Two hosts with a step at the 40th of 60 results, a series with two steps, one without.
  def fill
    random = Random.new(1)
    noise = ->(value) { value * (0.99 + (random.rand * 0.02)) }
    other = HOST.merge("cpu" => "Xeon")
    step = ->(number, level) { noise.call(number < 40 ? level : level * 1.1) }
    rubies = ->(number) { number < 40 ? "ruby 3.4.1 (2025)" : "ruby 4.0.0 (2026)" }
    store do |open|
      open.add("shop", runs(Array.new(60) { |number| step.call(number, 2e6) }, ruby: rubies))
      open.add("shop", runs(Array.new(60) { |number| step.call(number, 3e6) }, host: other))
      two = Array.new(60) { |number| noise.call(number.between?(20, 49) ? 500.0 : 600.0) }
      open.add("shop", runs(two, benchmark: "#{NAME} sort"))
      open.add("shop", runs([7.0, 7.0], benchmark: "quiet"))
    end
  end

  def test_charts_changes_and_search
    fill
    result = history("show", "--format", "html", "--out", "h.html", env: { "PITWALL_STORE" => "h.sqlite3" })
    assert_equal [0, "", ""], [result.status, result.out, result.err]
    seen = in_browser("page.mjs", "history", file("h.html"), *PICTURES, env: { "SEARCH" => "CHECKOUT xeon" })
    assert_equal [[], [], nil], seen.values_at("complaints", "nameless", "ran")
    assert_equal ["4 series", "182 results", "4 change points", "2026-01-01 to 2026-03-01"], seen["facts"]
    check_first(seen)
    check_steps(seen)
    assert_equal({ "600" => [], "1000" => [], "1600" => [] }, seen["clipped"])
  end

  # The newest change is the first series, and chosen. It has a change for the better and one for the worse.
  def check_first(seen)
    first = seen["first"]
    newest = "#{NAME} sort, wall time"
    assert_equal [newest, *["checkout, wall time"] * 2, "quiet, wall time"], first["series"].map(&:first)
    assert_equal [newest, ""], first.values_at("title", "hash")
    assert_equal %w[2026-02-20 2026-01-21], first["changes"].map(&:first)
    assert_equal [format("%040x", 50)[0, 10], "≤ 0.001"], first["changes"][0].values_at(1, 5)
    assert_match(/\A\+(19|2\d)\.\d%\z/, first["changes"][0][4])
    assert_match(/\A−1\d\.\d%\z/, first["changes"][1][4])
    [seen["inked"], seen["commits"]["inked"]].each do |ink|
      ink.each { |name, pixels| assert_operator pixels, :>, 40, "#{name} #{ink}" }
    end
    seen["dark"].slice("accent", "text").each { |name, pixels| assert_operator pixels, :>, 10, name }
  end

  def check_steps(seen)
    assert_match(/\A2026-02-20 00:00 · 5\d\d|\A2026-02-20 00:00 · 6\d\d/, seen["pointed"])
    assert_includes seen["pointed"], "commit #{format("%040x", 50)[0, 10]} · ruby 3.4.1"
    assert_match(/\A2026-02-19 00:00 · /, seen["before"])
    assert_equal "#axis=result", seen["commits"]["hash"]
    found = seen["found"]
    assert_equal ["checkout, wall time"], found["series"].map(&:first)
    assert_equal [["2026-02-10", format("%040x", 40)[0, 10]]], found["changes"].map { |row| row.first(2) }
    assert_equal "#search=CHECKOUT+xeon&axis=result", found["hash"]
    assert_equal ["quiet, wall time", []], seen["last"].values_at("title", "changes")
    assert_match(/series=quiet/, seen["last"]["hash"])
  end
end
