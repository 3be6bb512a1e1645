# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/cli"
require "pitwall/history"
require "pitwall/show"
require "sequel"
require "stringio"
require_relative "../support/history_files"
require_relative "../support/page_contents"

# What the page of `pitwall history show` is given. test/browser/history_test.rb opens it.
class HistoryPageDataTest < Minitest::Test
  include HistoryFiles
  include PageContents

  STORE = { "PITWALL_STORE" => "h.sqlite3" }.freeze
  Series = Pitwall::Analyse::ResultSeries

  def page(*words)
    result = history("show", *words, "--format", "html", "--out", "h.html", env: STORE)
    assert_equal [0, "", ""], [result.status, result.out, result.err]
    @object, @column = unpack(File.read(file("h.html"), encoding: "UTF-8"))
    @object["series"]
  end

  def values
    random = Random.new(1)
    Array.new(60) { |number| (number < 40 ? 1000 : 1100) * (0.99 + (random.rand * 0.02)) }
  end

  def rubies = ->(number) { number < 40 ? "ruby 3.4.1 (2025)" : "ruby 4.0.0 (2026)" }

  def test_a_series_and_its_change
    store { |open| open.add("shop", runs(values, ruby: rubies)) }
    one, *others = page
    assert_empty others
    assert_equal ["history", "History of shop"], @object.values_at("kind", "title")
    assert_equal ["60 results", "1 change point", "2026-01-01 to 2026-03-01"], @object["facts"].last(3)
    assert_equal ["checkout", "wall time", "ns", "lower", 60], one.values_at("name", "metric", "unit", "better", "count")
    assert_equal ["2 cores, AMD EPYC, 4.00 GiB"], @object["hosts"].values
    values.zip(one["values"]) { |value, drawn| assert_in_delta value, drawn, 0.001 }
    assert_equal [nil, nil], one.values_at("lows", "highs"), "no result has an interval"

    change, = one["changes"]
    assert_equal [40, "2026-02-10 00:00", format("%040x", 40), true, "ruby 3.4.1 → ruby 4.0.0"],
                 change.values_at("at", "since", "commit", "worse", "ruby")
    text = history("changes", env: STORE).out
    change.values_at("since", "before", "after", "change", "p").each { |cell| assert_includes text, cell }
    levels = one["levels"]
    assert_equal [0, 40], levels.map(&:first)
    assert_in_delta 1.1, levels[1][1] / levels[0][1], 0.01
    runs = @column.call(one["runs"])
    assert_equal Time.utc(2026, 2, 10).to_i, @object["times"][runs[40]]
    assert_equal format("%040x", 40), @object["commits"][@column.call(@object["commit"])[runs[40]]]
    assert_equal "ruby 4.0.0 (2026)", @object["rubies"][@column.call(@object["ruby"])[runs[40]]]
  end

  def test_intervals_metrics_and_hosts
    bench_file("a.jsonl", 1000.0)
    bench_file("b.jsonl", 3000.0, host: HOST.merge("cpu" => "Xeon"))
    history("add", "a.jsonl", "b.jsonl", env: STORE)
    found = page
    assert_equal ["objects allocated", "wall time"], found.map { |one| one["metric"] }.uniq.sort
    assert_equal [[1000.0], [3000.0]], found.select { |one| one["unit"] == "ns" }.map { |one| one["values"] }.sort
    assert_equal 2, @object["hosts"].size
    assert_equal 2, @object["times"].size, "a run of several series is there once"
    assert_equal 2, page("--metric", "wall").size
    mixed, = page("--metric", "wall", "--mix-hosts")
    assert_equal ["(mixed)", 2], mixed.values_at("host", "count")
    assert_empty @object["hosts"]

    figure = Pitwall::History::Figure.new(suite: "", benchmark: "known", variant: "", metric: "wall", unit: "ns",
                                          better: "lower", value: 5.0, low: 4.0, high: 7.0)
    run = runs([1.0], source: "i").first
    run.figures = [figure]
    store { |open| open.add("shop", [run]) }
    assert_equal [[5.0], [4.0], [7.0]], page("known")[0].values_at("values", "lows", "highs")
  end

  # Changes that are older than the results have no place in the chart. The level begins with the newest of them.
  def test_the_newest_results
    store { |open| open.add("shop", runs(values, ruby: rubies)) }
    one, = page("--last", "15")
    assert_equal [15, 60], [one["values"].size, one["count"]]
    assert_equal [nil, nil, nil], one["changes"][0].values_at("at", "commit", "ruby")
    assert_equal [0], one["levels"].map(&:first)
    assert_in_delta 1100, one["levels"][0][1], 10
  end

  def test_levels
    points = Array.new(4) { |at| { run_id: at, value: at.to_f } }
    change = ->(id) { { run_id: id, before: 1.0, after: 2.0 } }
    levels = ->(*ids) { Series.new(points: points, changes: ids.map(&change)).levels }
    assert_equal [[0, 1.5]], levels.call
    assert_equal [[0, 1.0], [2, 2.0]], levels.call(2)
    assert_equal [[0, 2.0]], levels.call(0), "the first point is at the new level"
    assert_equal [[0, 2.0]], levels.call("older")
    assert_equal [[0, 1.0], [3, 2.0]], levels.call("older", 3)
    assert_empty Series.new(points: [], changes: []).levels
  end

  def test_names_are_no_markup
    store { |open| open.add("shop", runs([1.0], benchmark: "</script><img src=x>")) }
    page
    refute_includes File.read(file("h.html")), "<img src=x>"
  end

  def test_options_that_a_page_does_not_take
    store { |open| open.add("shop", runs([1.0])) }
    { %w[show] => /--format html: a page is a file: add --out FILE.html/,
      %w[show --out h.html --limit 3] => /leave out --limit/, %w[show --out h.html --plot] => /leave out --plot/,
      %w[changes --out h.html] => /history changes has text, json, markdown/,
      %w[show --out h.sqlite3] => /name another file/ }.each do |words, expected|
      assert_refused(2, expected, *words, "--format", "html", env: STORE)
    end
    assert_path_exists file("h.sqlite3")
    refute_path_exists file("h.html")
  end
end
