# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/traced_recording"
require_relative "../support/drawn_view"
require "pitwall/analyse"
require "pitwall/show"

# Traced calls from the file to the views, with figures computed by hand.
class CallsTest < Minitest::Test
  Analyse = Pitwall::Analyse

  def segments(...) = RandomRecording.read(TracedRecording.bytes(...)).segments
  def report(weight = :wall, **query)
    Analyse::Report.new(segments, Analyse::Report::Query.new(weight: weight, **query))
  end

  def test_the_last_row_counts_and_probes_are_taken_off
    [false, true].each do |compress|
      rows = segments(compress: compress).first.calls
      assert_equal 6, rows.size
      assert_equal [2, 500], rows.find { |row| row.wall == 500 }.to_a.values_at(2, 3)
    end
    assert_equal 1000 - 100 + 500 - 50 + 0 + 600 + 10 + 4000, report.total
    assert_equal 18, report(:calls).total
    assert_equal [16, 1120, 5000], %i[objects bytes wait].map { |weight| report(weight).total }
    assert_equal 800 + 450 + 600 + 3000, report(:cpu).total
  end

  def test_times_of_calls
    rows = report.call_times.to_h { |row| [row.method.name, row] }
    assert_equal [1050, 1050, 0, 0, 8], rows.fetch("Shop#sum").to_a.drop(1), "recursion counts once in total"
    assert_equal [600, 0, 0, 600, 2], rows.fetch("Array#each").to_a.drop(1)
    assert_equal [5010, 10, 5000, 0, 1], rows.fetch("Thread#join").to_a.drop(1)
    assert_equal 900 + 1050 + 5010, rows.fetch("<main>").total
    rows.each_value { |row| assert_equal row.total, row.own + row.wait + row.child }
    cpu = report(:cpu).call_times.to_h { |row| [row.method.name, row] }
    assert_equal [0, 0], cpu.fetch("Thread#join").to_a.values_at(1, 3)
  end

  def test_calls_of_what_is_folded_into_a_method_are_not_its_own
    rows = report(blackbox: ["Array#each"]).call_times.to_h { |row| [row.method.name, row] }
    assert_equal [600, 2], rows.fetch("Array#each").to_a.values_at(2, 5)
    assert_equal 2, rows.fetch("Shop#sum").calls
    rows = report(blackbox: ["Shop#sum"]).call_times.to_h { |row| [row.method.name, row] }
    assert_equal [1050, 8], rows.fetch("Shop#sum").to_a.values_at(2, 5), "recursion is"
    refute_includes rows, "Array#each"
    assert_equal 2, report(blackbox: ["Array#each"]).flat.find { |row| row.method.name == "Array#each" }.also[:calls]
  end

  def test_selections
    worker = report(selection: Analyse::Selection.new(thread: "worker"))
    assert_equal ["Shop#tax"], worker.flat.map { |row| row.method.name }
    assert_equal [4000, 3000], worker.threads.find { |row| row.name == "worker" }.to_a.values_at(4, 5)
    assert_equal 0, report(selection: Analyse::Selection.new(state: 0)).total
    assert_raises(Pitwall::UsageError) { report(selection: Analyse::Selection.new(thread: "nobody")).tree }
  end

  def test_views
    text = DrawnView.drawn(report, :calls)
    assert_match(/^ *self% +total +self +wait +child +calls +method/, text)
    assert_match(/1\.05 µs +1\.05 µs +0 s +0 s +8 +Shop#sum/, text)
    assert_match(/18 calls traced/, text)
    tree = DrawnView.drawn(report, :tree)
    assert_match(/ 6 .*Shop#sum/, tree)
    json = JSON.parse(DrawnView.json(report, :calls, :tree))
    sum = json.fetch("methods").find { |method| method.fetch("name") == "Shop#sum" }
    assert_equal [8, 12, 960, 1050], sum.values_at("calls", "objects", "bytes", "self_cpu")
  end

  # method, total, calls
  def neighbours(kind, weight, **query)
    result = report(weight, **query).public_send(kind).last
    [result.calls, result.rows.map { |row| [row.method&.name, row.total, row.calls] }]
  end

  def test_neighbours_have_the_calls_of_one_by_the_other_at_every_weight
    %i[wall objects].each do |weight|
      assert_equal [8, [["Array#each", 0, 2]]], neighbours(:callees, weight, callees: "Shop#sum")
    end
    assert_equal [8, [["<main>", 10, 2], ["Array#each", 0, 6]]], neighbours(:callers, :calls, callers: "Shop#sum")
    assert_equal [7, [[nil, 4000, 7]]], neighbours(:callers, :wall, callers: "Shop#tax")
    assert_equal [2, [["Shop#sum", 600, 2]]], neighbours(:callers, :wall, callers: "Array#each")
    assert_equal [2, []], neighbours(:callees, :wall, callees: "Shop#sum", blackbox: ["Shop#sum"]),
                 "of what is folded away nothing is told"
  end

  def test_a_method_that_calls_itself_is_among_its_callers_and_callees
    down, across = ["Walker#down", "/app/w.rb", 2, 3], ["Walker#across", "/app/w.rb", 9, 9]
    bytes = RecordingBuilder.build(mode: "none") do |segment|
      segment.calls stack: [down], calls: 1, wall: 100
      segment.calls stack: [down, across], calls: 50
      segment.calls stack: [down, down], calls: 5, wall: 100
      segment.calls stack: [down, down, across], calls: 3
      segment.traced
    end
    %i[wall objects calls].each do |weight|
      query = { weight: weight, callees: "down", callers: "down" }
      report = Analyse::Report.new(RandomRecording.read(bytes).segments, Analyse::Report::Query.new(**query))
      assert_equal({ "Walker#across" => 53, "Walker#down" => 5 },
                   report.callees.last.rows.to_h { |row| [row.method.name, row.calls] })
      assert_equal({ nil => 1, "Walker#down" => 5 },
                   report.callers.last.rows.to_h { |row| [row.method&.name, row.calls] })
      next unless report.total.positive?

      text = DrawnView.drawn(report, :callees)
      assert_match(/^ *of all +of it +#{weight == :calls ? "calls below" : weight} +calls +callee$/, text)
      assert_match(/ 53 +Walker#across/, text)
      callees = JSON.parse(DrawnView.json(report, :callees))["callees"]
      assert_equal [6, [5, 53]], [callees["calls"], callees["methods"].map { |row| row["calls"] }.sort]
    end
  end

  def test_what_the_header_says_of_a_trace
    text = DrawnView.drawn(report, :calls)
    assert_match(/18 calls traced · probes \d+ ns, taken off /, text)
    assert_match(/taken off .*the first line's times include what Pitwall needed to start/m, text)
    assert_equal 1, text.scan("own cost").size
    assert_match(/^ *wall without wait +cpu +thread$/, text)
    assert_match(/own cost 10\.0 ms \(0\.7% of the CPU time\)/, text)
    [1_000_000, 20_000_000].each do |cpu|
      waiting = segments.map { |segment| segment.with(stats: segment.stats.merge("process_cpu_ns" => cpu)) }
      assert_match(/own cost 10\.0 ms$/, DrawnView.drawn(Analyse::Report.new(waiting), :calls))
    end
  end

  def test_callgrind_adds_up
    lines = +""
    Pitwall::Show::Export::Callgrind.new(report).write(lines)
    assert_match(/^events: Wall_ns CPU_ns Objects Bytes$/, lines)
    assert_match(/^summary: 5960 4850 16 1120$/, lines)
    own = lines.gsub(/^calls=.*\n.*\n/, "").scan(/^\d+ (\d+) \d+ \d+ \d+$/).sum { |found| found.first.to_i }
    assert_equal 5960, own
    assert_match(%r{^cfi=/app/shop\.rb\ncfn=Shop#sum\ncalls=6 3\n0 600 600 12 960$}, lines)
  end

  def test_calls_whose_nodes_never_came_are_at_the_root
    bytes = RecordingBuilder.build do |segment|
      segment.chunk("CALL",
                    [1].pack("w") + [1, 99, 1, 0, 0, 0, 0, 0, 0].map { |value| RecordingBuilder.column([value]) }.join)
    end
    [false, true].each do |salvage|
      assert_equal [0], RandomRecording.read(bytes, salvage: salvage).segments.first.calls.map(&:node_id)
    end
  end
end
