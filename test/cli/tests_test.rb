# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/cli"
require "pitwall/analyse"
require "pitwall/show"
require "json"
require "stringio"
require "tmpdir"

# What tests took, in every format. With the real frameworks: test/collect/tests_test.rb.
class TestsReportTest < Minitest::Test
  MS = 1000 # of the unit
  SLOW = { "test" => "CartTest#test_slow" }.freeze
  QUICK = { "test" => "CartTest#test_quick" }.freeze
  SPEC = { "test" => "cart <b>|`adds` up" }.freeze

  def setup
    @dir = Dir.mktmpdir("pitwall-tests-")
    @file = File.join(@dir, "a.pit")
    File.binwrite(@file, bytes(7) + bytes(8))
  end

  def teardown = FileUtils.rm_rf(@dir)

  # The quick test ran in both processes. The test's request has labels of its own, and is no test.
  def bytes(pid)
    RecordingBuilder.build(pid: pid) do |segment|
      segment.thread(1, "main")
      segment.row(stack: [["Cart#total", "/app/cart.rb", 1, 2]], wall: 40 * MS, cpu: 10 * MS, labels: SLOW)
      segment.row(stack: [["Cart#add", "/app/cart.rb", 9, 9]], wall: 5 * MS, cpu: 5 * MS, labels: QUICK)
      segment.mark(SLOW.merge("route" => "carts#show"), end_ns: 39_000_000, ns: 39_000_000)
      segment.mark(SLOW, end_ns: 40_000_000, ns: 40_000_000) if pid == 7
      segment.mark(QUICK, end_ns: 45_000_000, ns: 5_000_000 + pid)
      segment.work(SLOW.merge("route" => "carts#show"), count: 1, ns: 39_000_000)
      # Cumulative: this row is superseded.
      segment.test(QUICK, count: 1, ns: 1, cpu: 1)
      segment.flush
      segment.test(SLOW, ns: 40_000_000, cpu: 10_000_000, objects: 1234, gc: 3_000_000) if pid == 7
      segment.test(QUICK, ns: 5_000_000, cpu: 4_000_000, objects: 10, counted: pid == 7 ? 1 : 0)
      segment.test(SPEC, ns: 2_000_000, cpu: 1_000_000, objects: 7) if pid == 8
    end
  end

  def report(*arguments, file: @file)
    out, err = StringIO.new, StringIO.new
    status = Pitwall::CLI.run(["report", file, *arguments], out: out, err: err)
    [status, out.string, err.string]
  end

  def test_text
    status, text, = report("--view", "tests")
    assert_equal 0, status
    assert_match(/^   took +cpu +objects +gc +runs +request +test$/, text)
    rows = text.lines(chomp: true).map { |line| line.strip.split(/ {2,}/) }
    assert_includes rows, ["40.0 ms", "10.0 ms", "1,234", "3.00 ms", "1", "1", "CartTest#test_slow"]
    assert_includes rows, ["10.0 ms", "8.00 ms", "2", "4", "CartTest#test_quick"], "objects of both runs are not known"
    assert_includes rows, ["2.00 ms", "1.00 ms", "7", "0 s", "1", SPEC["test"]], "its run is not known one by one"
    assert_match(/^3 tests took 52\.0 ms\.$/, text)
    assert_match(/Tests that ran beside others have no objects and no GC of their own\./, text)
    assert_match(/^Next: pitwall report \S+ --request 1 --tree$/, text)
    assert_match(/^3 tests took 52\.0 ms, the 1 slowest 40\.0 ms\.$/, report("--view", "tests", "--limit", "1")[1])
  end

  # A suite's report opens the way to its tests.
  def test_what_is_suggested
    assert_match(/^Next: pitwall report \S+ --view tests$/, report[1])
    refute_match(/--view requests/, report[1])
    refute_match(/--view tests/, report("--request", "1")[1])
  end

  # What the table names opens.
  def test_one_test
    assert_match(/only request 1 \(test=CartTest#test_slow, took 40\.0 ms\)/, report("--request", "1", "--tree")[1])
    text = report("--label", "test=CartTest#test_quick", "--tree")[1]
    assert_match(/only test=CartTest#test_quick: 10\.0 ms/, text)
    refute_match(/Cart#total/, text)
  end

  def test_json
    rows = JSON.parse(report("--view", "tests", "--format", "json")[1])["tests"]
    assert_equal %w[name runs duration_ns cpu_ns objects gc_ns request], rows[0].keys
    assert_equal ["CartTest#test_slow", 1, 40_000_000, 10_000_000, 1234, 3_000_000, 1], rows[0].values
    assert_equal ["CartTest#test_quick", 2, 10_000_000, 8_000_000, nil, nil, 4], rows[1].values
    assert_equal 3, rows.size
    of_one = JSON.parse(report("--view", "tests", "--format", "json", "--process", "8")[1])["tests"]
    assert_equal [["CartTest#test_quick", 1], [SPEC["test"], 1]], of_one.map { |row| row.values_at("name", "runs") }
  end

  def test_markdown
    text = report("--view", "tests", "--format", "markdown", "--limit", "3")[1]
    assert_includes text.lines(chomp: true), "| took | cpu | objects | gc | runs | request | test |"
    assert_includes text.lines(chomp: true), "| 40.0 ms | 10.0 ms | 1,234 | 3.00 ms | 1 | 1 | `CartTest#test_slow` |"
    assert_includes text.lines(chomp: true), "| 2.00 ms | 1.00 ms | 7 | 0 s | 1 |  | `` cart <b>\\|`adds` up `` |"
    assert_match(/^3 tests took 52\.0 ms\. Tests that/, text)
  end

  def test_hashed_names
    text = report("--view", "tests", "--redact")[1]
    refute_match(/CartTest/, text)
    assert_match(/ hashed-\h{12}$/, text)
  end

  def test_what_can_not_be_shown
    empty = File.join(@dir, "b.pit")
    File.binwrite(empty, RecordingBuilder.build { |segment| segment.row(stack: [["a", "/a.rb", 1, 1]]) })
    assert_match(/^no tests were recorded: pitwall profile -- CMD knows/, report("--view", "tests", file: empty)[1])
    assert_match(/no tests were recorded/, report("--view", "tests", "--format", "markdown", file: empty)[1])
    assert_equal [], JSON.parse(report("--view", "tests", "--format", "json", file: empty)[1])["tests"]
    said = "pitwall: --thread: tests are not told by thread and state: leave it out, or see --view labels\n"
    assert_equal [2, "", said], report("--view", "tests", "--thread", "main")
    said = "pitwall: --request 1 is one request in one thread: leave out --view tests\n"
    assert_equal [2, "", said], report("--view", "tests", "--request", "1")
  end

  # One row, whose label set 9 is not there.
  def test_damage
    File.binwrite(@file, RecordingBuilder.build { |segment| segment.chunk("TEST", [1, 1, 9, *[1, 1] * 6].pack("w*")) })
    status, _, err = report("--view", "tests")
    assert_equal 5, status
    assert_match(/label set 9/, err)
  end
end
