# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/page_contents"
require_relative "../support/recording_builder"
require "json"
require "pitwall/analyse"
require "pitwall/show"
require "pitwall/views/hints"

# `pitwall compare A.pit B.pit` of recordings of allocations.
class CompareObjectsTest < Minitest::Test
  include CommandLine
  include PageContents

  LOAD = [["Order#load", "/srv/app/order.rb", 1, 3]].freeze
  LIST = [["Order#list", "/srv/app/order.rb", 8, 9]].freeze

  # @param load [Integer] objects of Order#load; of Order#list there are 500
  def made(name, load, rest: 500, **head)
    bytes = RecordingBuilder.build(mode: "none", **head) do |segment|
      segment.site(1, type: 0, class_name: "", counters: [90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      segment.site(5, stack: LOAD, counters: [load, 0, load - 7, 0, 0, 0, load * 40, load * 40, 7, 0, 280])
      segment.site(6, stack: LIST, class_name: "<b>Order", type: 1,
                      counters: [rest, 0, rest, 0, 0, 0, rest * 80, rest * 80, 0, 0, 0])
      yield segment if block_given?
    end
    File.binwrite(file(name), bytes)
  end

  def compare(*options)
    result = pitwall("compare", "a.pit", "b.pit", *options)
    [result.status.exitstatus, result.out.force_encoding(Encoding::UTF_8), result.err]
  end

  def test_every_format_has_totals_and_sites_that_changed
    made("a.pit", 1000)
    made("b.pit", 1800)
    status, text, = compare
    assert_equal 0, status
    assert_match(/\AObjects: a\.pit 1,500, b\.pit 2,300 \(\+800, \+53\.3%\) · bytes: 78\.1 KiB → 109 KiB /,
                 text.tr("\n", " ").squeeze(" "))
    assert_match(/ → 109 KiB \(\+31\.2 KiB, \+40\.0%\)/, text.tr("\n", " ").squeeze(" "))
    assert_match(%r{^ +\+800 +\+31\.2 KiB +1,000 +1,800 +String +/srv/app/order\.rb:3$}, text)
    refute_includes text, "order.rb:9"
    assert_match(/^1 site changed; 1 did not$/, text)
    assert_match(/all objects were counted; what differs from run to run is not in them/, text)
    assert_includes compare("--format", "markdown")[1],
                    "| +800 |  | +31.2 KiB | 1,000 | 1,800 | `String` | `/srv/app/order.rb:3` |"
    objects = JSON.parse(compare("--format", "json")[1])["objects"]
    assert_equal ["a.pit", "b.pit", true], objects.values_at("base", "side", "exact")
    total = objects["totals"]["objects"]
    assert_equal [1500, 2300, 800, true], total.values_at("a", "b", "change", "changed")
    sites = objects["sites"].map { |site| [site["method"], site["objects"]["change"], site["changed"]] }
    assert_equal [["Order#load", 800, true], ["Order#list", 0, false]], sites
    assert_equal 0, compare("--format", "html", "--out", "x.html").first
    page = JSON.parse(page_json(File.read(file("x.html"), encoding: "UTF-8")))
    assert_equal "Objects", page["why_title"]
    table = page["why"][0]["tables"].fetch(0)
    row = ["String", { "text" => "+800", "style" => "red" }, "1,000", "1,800",
           { "text" => "+31.2 KiB", "style" => "red" }]
    assert_equal [row], table["rows"].map { |cells| cells.first(5) }
  end

  def test_the_same_and_further_runs
    made("a.pit", 1000)
    made("b.pit", 1000)
    assert_match(/\AObjects: a\.pit 1,500, b\.pit 1,500 \(the same\).*^0 sites changed; 2 did not/m, compare[1])
    made("a2.pit", 1100)
    made("b2.pit", 1050)
    text = compare("--before", "a2.pit", "--after", "b2.pit")[1]
    assert_match(/^0 sites changed; 2 did not\nall objects were counted; /, text)
    assert_match(/\nall objects were counted; a change counts beyond the range of each side's runs$/, text)
    made("b.pit", 1300)
    made("b2.pit", 1310)
    assert_match(/^ +\+255 +\+200 … \+310 +/, compare("--before", "a2.pit", "--after", "b2.pit")[1])
  end

  def test_what_is_retained_counts
    keep = lambda do |retained|
      counters = [900, 0, 900 - retained, 0, 0, 0, 36_000, 36_000, retained, 0, retained * 40]
      proc { |segment| segment.site(8, stack: [["Order#keep", "/srv/app/order.rb", 20, 21]], counters: counters) }
    end
    made("a.pit", 1000, &keep.call(700))
    made("b.pit", 1000, &keep.call(2))
    text = compare[1]
    assert_match(/retained: 707 → 9 \(−698, −98\.7%\)/, text.tr("\n", " ").squeeze(" "))
    heads = /^objects +bytes +retained +a\.pit +b\.pit +class\n/
    assert_match(%r{#{heads} +same +same +−698 +900 +900 +String +/srv/app/order\.rb:21$}, text)
    assert_match(/^1 site changed; 2 did not$/, text)
    assert_includes compare("--format", "markdown")[1],
                    "| same |  | same | −698 | 900 | 900 | `String` | `/srv/app/order.rb:21` |"
    object = JSON.parse(compare("--format", "json")[1])["objects"]
    kept = object["sites"].find { |site| site["lines"] == [21, 21] }["retained"]
    assert_equal [700, 2, -698, true], kept.values_at("a", "b", "change", "changed")
    assert_nil object["growth"]
    assert_equal 0, compare("--format", "html", "--out", "x.html").first
    row = JSON.parse(page_json(File.read(file("x.html"), encoding: "UTF-8")))["why"][0]["tables"][0]["rows"].fetch(0)
    assert_equal [{ "text" => "−698", "style" => "green" }, "700", "2"], row[-5, 3]
    # One or two are kept by chance.
    made("a.pit", 1000, &keep.call(4))
    assert_match(/^0 sites changed/, compare[1])
  end

  def test_what_keeps_growing
    points = lambda do |each|
      proc do |segment|
        20.times do |at|
          segment.living(at + 1, at_ns: (at + 1) * 1_000_000_000, sites: { 5 => 100 + (at * each) }, flags: 1)
        end
      end
    end
    made("a.pit", 1000, &points.call(30))
    made("b.pit", 1000, &points.call(0))
    assert_match(/^Growing: a\.pit 1 place, 1,800 objects a minute; b\.pit none$/, compare[1])
    growth = JSON.parse(compare("--format", "json")[1])["objects"]["growth"]
    assert_equal [[1], [0]], growth.map { |runs| runs.map { |run| run["sites"].size } }
    made("b.pit", 1000) { |segment| segment.living(1, at_ns: 1, sites: { 5 => 3 }) }
    assert_match(/; b\.pit not known$/, compare[1])
    made("b.pit", 1000)
    refute_includes compare[1], "Growing"
  end

  # A command whose leak is mended, and a benchmark's iterations.
  def test_sides_that_retain_less
    File.write(file("keep.rb"), "KEPT = Array.new(Integer(ENV.fetch(\"N\"))) { |i| \"kept \#{i}\" }\n")
    common = ["compare", "--retained", "--pairs", "2", "--fail-if", "retained > 2%"]
    result = pitwall(*common, "--format", "json", "--out", "c.json", "--env", "N=2000", "--env", "N=500", "--",
                     RUBY, "--disable-gems", "keep.rb", env: { "PITWALL_DEBUG" => nil })
    assert_equal 0, result.status.exitstatus, result.err
    rows = JSON.parse(File.read(file("c.json")))["results"].to_h { |row| [row["metric"], row] }
    retained = rows.fetch("retained")
    assert_equal "fewer", retained["verdict"]
    assert_in_delta 1500, retained["a"] - retained["b"], 3
    assert_equal %w[fewer bytes], rows.fetch("retained_bytes").values_at("verdict", "unit")
    result = pitwall(*common, "--quiet", "--env", "N=500", "--env", "N=2000", "--",
                     RUBY, "--disable-gems", "keep.rb", env: { "PITWALL_DEBUG" => nil })
    assert_equal 1, result.status.exitstatus, result.err
  end

  def test_no_line_is_too_long
    made("a.pit", 1000)
    made("b.pit", 1800, rest: 20) do |segment|
      stack = [["X#x", "/srv/#{"long/" * 30}x.rb", 1, 3]]
      segment.site(7, stack: stack, class_name: "Very::#{"Long" * 20}")
    end
    sides = %w[a.pit b.pit].map { |name| [Pitwall::Record.read(file(name)).segments] }
    change = Pitwall::Analyse::AllocationChange.new(sides)
    [60, 100, 160].each do |width|
      view = Pitwall::Show::AllocationChangeView.new(
        change, base: "a/#{"long" * 9}.pit", side: "b.pit", hints: Pitwall::Views::Hints,
                warnings: ["different programs: #{"x y " * 40}"]
      )
      lines = view.lines(width: width, palette: Pitwall::Show::Plain)
      assert_empty(lines.select { |line| Pitwall::Show::Text.width(line) > width })
    end
  end

  def test_what_cannot_be_held_against_each_other
    made("a.pit", 1000)
    File.binwrite(file("b.pit"), RecordingBuilder.build { |segment| segment.row(stack: LOAD, wall: 5) })
    assert_refused(/\Apitwall: a\.pit holds objects, and b\.pit times: they can't be compared; record both alike$/)
    made("b.pit", 1000) { |segment| segment.allocation_totals(flags: 4) }
    assert_refused(/\Apitwall: b\.pit looked at objects in bursts, and a\.pit at all of them: record both alike$/)
    made("b.pit", 1000)
    refusal = /\Apitwall: --weight cpu: is for times, and the recordings hold objects: leave it out$/
    assert_refused(refusal, "--weight", "cpu")
  end

  # What can't be told is no success.
  def test_recordings_without_a_sample
    %w[a.pit b.pit].each do |name|
      File.binwrite(file(name), RecordingBuilder.build { |segment| segment.thread(1, "main") })
    end
    status, text, = compare
    assert_match(/Why: not known/, text)
    assert_equal 4, status
  end

  def assert_refused(message, *options)
    result = pitwall("compare", "a.pit", "b.pit", *options, env: { "PITWALL_DEBUG" => nil })
    assert_equal [2, "", 1], [result.status.exitstatus, result.out, result.err.lines.size], result.err
    assert_match(message, result.err)
  end
end
