# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/drawn_view"
require "pitwall/cli"
require "pitwall/analyse"
require "pitwall/show"
require "json"
require "stringio"
require "tmpdir"

# Queries of requests, in every format. With real databases: test/collect/queries_test.rb.
class QueriesReportTest < Minitest::Test
  MS = 1000 # of the unit
  RECENT = { "route" => "GET /orders/recent" }.freeze
  FINE = { "route" => "GET /fine" }.freeze
  SLOW = ["Order#customer", "/app/models/order.rb", 30, 31].freeze
  LIST = ["OrdersController#recent", "/app/controllers/orders_controller.rb", 5, 7].freeze
  DIGEST = 0x3f2a90c1d4e5

  def setup
    @dir = Dir.mktmpdir("pitwall-queries-")
    @file = File.join(@dir, "a.pit")
    File.binwrite(@file, bytes)
  end

  def teardown = FileUtils.rm_rf(@dir)

  # Two requests of the slow route, three of the other. 200 times a request the same, once from a cache each.
  def bytes(repeats: 200, **head)
    RecordingBuilder.build(**head) do |segment|
      segment.thread(1, "puma 1")
      segment.row(stack: [LIST, SLOW], wall: 80 * MS, cpu: 60 * MS, labels: RECENT)
      segment.row(stack: [LIST], wall: 20 * MS, cpu: 20 * MS, labels: RECENT)
      segment.row(stack: [LIST], wall: 30 * MS, cpu: 30 * MS, labels: FINE)
      segment.mark(RECENT, end_ns: 60_000_000, ns: 60_000_000)
      segment.mark(RECENT, end_ns: 100_000_000, ns: 40_000_000)
      3.times { |number| segment.mark(FINE, end_ns: 110_000_000 + number * 10_000_000, ns: 10_000_000 - number) }
      segment.work(RECENT, count: 2, ns: 100_000_000)
      segment.work(FINE, count: 3, ns: 30_000_000)
      segment.queries(RECENT, digest: DIGEST, place: SLOW, works: 1, count: 1) # cumulative: superseded
      segment.flush
      segment.queries(RECENT, digest: DIGEST, place: SLOW, works: 2, count: repeats * 2, ns: 20_000_000, most: repeats)
      segment.queries(RECENT, digest: DIGEST, place: SLOW, kind: 1, works: 2, count: 2, most: 1)
      segment.queries(RECENT, digest: 7, place: LIST, works: 2, count: 2, ns: 1_000_000, most: 1)
      segment.queries(FINE, digest: 7, place: LIST, works: 3, count: 3, ns: 1_500_000, most: 1)
      segment.queries(FINE, digest: 8, kind: 2, works: 1, count: 4, ns: 500_000)
      segment.queries({}, digest: 9, place: LIST, count: 5, ns: 4_000_000)
      segment.queries_of(60_000_000, digest: DIGEST, place: SLOW, count: repeats, ns: 12_000_000)
      segment.queries_of(60_000_000, digest: DIGEST, place: SLOW, kind: 1, count: 1)
      segment.queries_of(60_000_000, digest: 7, place: LIST, count: 1, ns: 500_000)
      segment.queries_of(110_000_000, digest: 7, place: LIST, count: 1, ns: 500_000)
    end
  end

  def report(*arguments, file: @file)
    out, err = StringIO.new, StringIO.new
    status = Pitwall::CLI.run(["report", file, *arguments], out: out, err: err)
    [status, out.string, err.string]
  end

  def table(text) = text.lines(chomp: true).map { |line| line.strip.split(/ {2,}/) }
  def json(*arguments, **options) = JSON.parse(report("--format", "json", *arguments, **options)[1])

  def test_requests
    _, text, = report("--view", "requests")
    assert_match(/^request +took +began after +queries +repeats +sql +thread +what$/, text)
    assert_includes table(text), ["1", "60.0 ms", "0 s", "201", "201", "20.8%", "puma 1", "route=GET /orders/recent"]
    assert_includes table(text), ["3", "10.0 ms", "100 ms", "1", "5.0%", "puma 1", "route=GET /fine"]
    assert_includes table(text), ["4", "10.0 ms", "110 ms", "0", "puma 1", "route=GET /fine"]
    assert_match(/^405 queries in 5 requests \(81 a request\), 22\.5 ms: 17\.3% of the requests' time; 2 answered /,
                 text.gsub(/\n  /, " "))
    assert_match(/; 2 answered by a cache; 4 of the schema \(--view queries\)$/, text.gsub(/\n  /, " "))
    first = json("--view", "requests")["requests"].first
    assert_equal [201, 12_500_000, 1, 0, 201],
                 first.values_at("queries", "query_ns", "cached_queries", "schema_queries", "repeats")
    markdown = report("--view", "requests", "--format", "markdown")[1]
    lines = markdown.lines(chomp: true)
    assert_includes lines, "| request | took | began after | queries | repeats | sql | thread | what |"
    assert_includes lines, "| 1 | 60.0 ms | 0 s | 201 | 201 | 20.8% | `puma 1` | `route=GET /orders/recent` |"
  end

  def test_queries
    _, text, = report("--view", "queries")
    assert_match(/^queries +a request +most +time +share +query +line$/, text)
    assert_includes table(text),
                    ["400", "200", "200", "20.0 ms", "15.4%", "3f2a90c1", "Order#customer", "/app/models/order.rb:31"]
    assert_includes table(text),
                    ["2", "1", "1", "0 s", "3f2a90c1", "Order#customer (cached)", "/app/models/order.rb:31"]
    assert_includes table(text), ["4", "4", "4", "500 µs", "0.4%", "00000000", "(no line of the application) (schema)"]
    controller = "/app/controllers/orders_controller.rb:7"
    assert_includes table(text), ["5", "4.00 ms", "00000000", "OrdersController#recent", controller],
                    "of no request: no share"
    shown = json("--view", "queries")["queries"]
    keys = %w[counted requests queries query_ns of_ns cached_queries schema_queries]
    assert_equal [true, 5, 405, 22_500_000, 130_000_000, 2, 4], shown.values_at(*keys)
    row = { "path" => SLOW[1], "line" => 31, "method" => SLOW[0], "digest" => "3f2a90c1d4e5", "kind" => "asked",
            "requests" => 2, "queries" => 400, "ns" => 20_000_000, "most" => 200 }
    assert_equal row, shown["lines"].first
    fine = json("--view", "queries", "--label", "route=GET /fine")["queries"]
    assert_equal [3, 3, 30_000_000], fine.values_at("requests", "queries", "of_ns")
    markdown = report("--view", "queries", "--format", "markdown", "--limit", "1")[1]
    assert_includes markdown.lines(chomp: true),
                    "| 400 | 200 | 200 | 20.0 ms | 15.4% | 3f2a90c1 | `Order#customer` | `/app/models/order.rb:31` |"
    assert_match(/^4 more rows\. 405 queries in 5 requests/, markdown)
  end

  def test_one_request
    _, text, = report("--request", "1", "--tree")
    assert_match(/^Its queries: 201 \(the same from one line up to 201 times\), 1 answered by a cache, 12\.5 ms /, text)
    assert_match(/, 12\.5 ms \(20\.8% of its time\)$/, text)
    assert_includes table(text),
                    ["200", "200", "200", "12.0 ms", "20.0%", "3f2a90c1", "Order#customer", "/app/models/order.rb:31"]
    refute_match(/Its queries/, report("--request", "4")[1])
    request = json("--request", "1")["request"]
    assert_equal [200, 1, 1], request["query_lines"].map { |row| row["queries"] }
    counts = [1, 3].map do |number|
      [number, json("--request", number.to_s, "--view", "queries")["queries"]["queries"]]
    end
    assert_equal [[1, 201], [3, 1]], counts
  end

  def test_the_finding
    finding = json["findings"].find { |one| one["kind"] == "repeated_queries" }
    assert_equal "GET /orders/recent ran 201 queries a request from Order#customer, /app/models/order.rb:31, " \
                 "the same but for their values, some answered by a cache; " \
                 "that line takes 80% of its time (80.0 ms).", finding["text"]
    assert_equal({ "queries" => 201, "requests" => 2, "count" => 402, "digest" => "3f2a90c1d4e5", "cached" => 2,
                   "query_ns" => 20_000_000 }, finding["figures"])
    assert_equal "pitwall report #{@file} --view queries --label 'route=GET /orders/recent'", finding["more"]
    assert_equal "pitwall compare #{@file} NEW.pit", finding["proof"]
    assert(json("--label", "route=GET /fine")["findings"].none? { |one| one["kind"] == "repeated_queries" })
    one = json("--request", "1")["findings"].find { |found| found["kind"] == "repeated_queries" }
    assert_match(/\AGET \/orders\/recent ran 201 queries a request from/, one["text"])
  end

  def test_no_finding_without_repeats
    File.binwrite(@file, bytes(repeats: 4))
    assert(json["findings"].none? { |one| one["kind"] == "repeated_queries" })
    quick = RecordingBuilder.build do |segment|
      segment.row(stack: [LIST], wall: 1000 * MS, cpu: 1000 * MS, labels: RECENT)
      segment.mark(RECENT, end_ns: 1_000_000_000, ns: 1_000_000_000)
      segment.work(RECENT, count: 1, ns: 1_000_000_000)
      segment.queries(RECENT, place: SLOW, works: 1, count: 300, ns: 2_000_000)
    end
    File.binwrite(@file, quick)
    assert(json["findings"].none? { |one| one["kind"] == "repeated_queries" }, "0.2% of the time is no problem")
  end

  # A program without requests.
  def test_a_script
    script = lambda do |count|
      RecordingBuilder.build do |segment|
        segment.row(stack: [LIST, SLOW], wall: 500 * MS, cpu: 400 * MS)
        segment.row(stack: [LIST], wall: 500 * MS, cpu: 400 * MS)
        segment.queries(place: SLOW, count: count, ns: 200_000_000)
        segment.stats["elapsed_ns"] = 1_000_000_000
      end
    end
    File.binwrite(@file, script.(1000))
    finding = json["findings"].find { |one| one["kind"] == "repeated_queries" }
    assert_equal "The program ran 1,000 queries from Order#customer, /app/models/order.rb:31, the same but for their " \
                 "values; that line takes 50% of the wall time (500 ms).", finding["text"]
    assert_match(/^1,000 queries, 200 ms: 20\.0% of the time$/, report("--view", "queries")[1])
    File.binwrite(@file, script.(50))
    assert(json["findings"].none? { |one| one["kind"] == "repeated_queries" })
  end

  # Time in a driver's methods, but not in what the application does with an answer within.
  def test_the_driver_alone
    File.binwrite(@file, RecordingBuilder.build do |segment|
      driver = ["PG::Connection#exec", "", 0, 0, 1]
      segment.row(stack: [LIST, driver], wall: 30 * MS, cpu: 0, state: 2)
      segment.row(stack: [LIST, driver, ["PG::Result#each", "", 0, 0, 1], SLOW], wall: 20 * MS)
      segment.row(stack: [LIST], wall: 50 * MS)
    end)
    assert_match(/no queries were recorded: .* 30\.0% of the time \(30\.0 ms\) is in methods of a database's driver/,
                 report("--view", "queries")[1].gsub(/\n\s*/, " "))
    assert_equal [30_000_000, 100_000_000], json("--view", "queries")["queries"].values_at("driver_ns", "driver_of_ns")
    assert_match(/30\.0% of the time/, report("--view", "queries", "--format", "markdown")[1])
  end

  def test_redacted
    text = report("--view", "queries", "--redact")[1] + report("--view", "requests", "--redact", "--format", "json")[1]
    refute_match(%r{/app/|orders_controller|GET}, text)
    assert_match(%r{\(outside\)/\h{12}\.rb:31}, text)
  end

  def test_no_line_is_longer_than_the_terminal
    report = Pitwall::Analyse::Report.new(Pitwall::Record.read(@file).segments)
    [60, 100, 160].each do |width|
      %i[requests queries].each do |view|
        lines = DrawnView.body(report, view, file: "a.pit", width: width)
        assert_empty(lines.select { |line| Pitwall::Show::Text.width(line) > width }, "#{view} at #{width}")
        assert_match(/\b20[01]\b.*(?:order|recent)/i, lines[1], "what counts stays at #{width}")
      end
    end
  end

  def test_several_processes_are_added_up
    File.binwrite(@file, bytes(pid: 7) + bytes(pid: 8))
    assert_equal [810, 10], json("--view", "queries")["queries"].values_at("queries", "requests")
    assert_equal [405, 5], json("--view", "queries", "--process", "8")["queries"].values_at("queries", "requests")
  end

  def test_bad_input
    said = "pitwall: --thread: queries are not told by thread and state: leave it out, or see --view labels\n"
    assert_equal [2, "", said], report("--view", "queries", "--thread", "puma 1")
    File.binwrite(@file, RecordingBuilder.build { |segment| segment.row(stack: [LIST]) })
    assert_match(/^no queries were recorded/, report("--view", "queries")[1])
    assert_equal [false, []], json("--view", "queries")["queries"].values_at("counted", "lines")
  end

  # Numbers that the file does not have, a node that was lost.
  def test_a_hostile_recording
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: [LIST])
      segment.mark(RECENT, end_ns: 10, ns: 10)
      segment.flush
      column = ->(*values) { RecordingBuilder.column(values) }
      segment.chunk("QURY", [1].pack("w") + column.(3) + column.(99_999) + column.(5) + column.(77))
      sums = [[0, 0], [3, 12_345], [0, 0], [1, 2], [1, 2], [0, 0]]
      segment.chunk("QSUM", [2].pack("w") + sums.map { |values| column.(*values) }.join)
      segment.chunk("QREQ", [1].pack("w") + column.(1) + column.(10) + column.(4) + column.(2) + column.(3))
    end
    File.binwrite(@file, bytes)
    [%w[--view queries], %w[--view requests], %w[--request 1], %w[--view queries --format json],
     %w[--format html]].each do |arguments|
      status, _, err = report(*arguments)
      assert_equal [0, ""], [status, err], arguments.inspect
    end
    nines = Array.new(6) { RecordingBuilder.column([9]) }.join
    broken = RecordingBuilder.build { |segment| segment.chunk("QSUM", [1].pack("w") + nines) }
    File.binwrite(@file, broken)
    status, _, err = report("--view", "queries")
    assert_equal 5, status
    assert_match(/names label set 9/, err)
  end
end
