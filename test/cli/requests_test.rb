# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/page_contents"
require_relative "../support/random_recording"
require_relative "../support/drawn_view"
require "pitwall/cli"
require "pitwall/analyse"
require "pitwall/show"
require "json"
require "stringio"
require "tmpdir"
require "zlib"

# The slowest requests and what was sampled in them.
class RequestsReportTest < Minitest::Test
  include PageContents

  MS = 1000 # of the unit
  SHOW = { "route" => "orders#show" }.freeze
  INDEX = { "route" => "orders#index" }.freeze

  def setup
    @dir = Dir.mktmpdir("pitwall-requests-")
    @file = File.join(@dir, "a.pit")
    File.binwrite(@file, bytes)
  end

  def teardown = FileUtils.rm_rf(@dir)

  def stack(*names) = names.map { |name| [name, "/app/a.rb", 1, 2] }

  # Two threads; on the first: 0–10 idle, 10–50 show (its first 10 ms before it was known), 50–55 idle, 55–70 index.
  def bytes(pid: 7)
    RecordingBuilder.build(pid: pid) do |segment|
      segment.thread(1, "puma 1")
      segment.thread(2, "puma 2")
      segment.row(stack: stack("wait"), wall: 10 * MS, cpu: 0, state: 2)
      segment.row(stack: stack("call", "route"), wall: 10 * MS, cpu: 10 * MS, labels: { "route" => "(unknown)" })
      segment.row(stack: stack("call", "Order#load"), wall: 25 * MS, cpu: 5 * MS, labels: SHOW)
      segment.row(thread: 2, stack: stack("call", "Other#work"), wall: 60 * MS, cpu: 60 * MS, labels: SHOW)
      segment.row(stack: stack("wait"), wall: 10 * MS, cpu: 0, state: 2)
      segment.row(stack: stack("call", "Order#list"), wall: 15 * MS, cpu: 15 * MS, labels: INDEX)
      segment.mark(SHOW, end_ns: 50_000_000, ns: 42_000_000)
      segment.mark(INDEX, end_ns: 70_000_000, ns: 15_000_000)
      segment.mark(SHOW, thread: 2, end_ns: 60_000_000, ns: 5_000_000)
      segment.work(SHOW, count: 9, ns: 50_000_000)
      segment.work(INDEX, count: 1, ns: 15_000_000)
    end
  end

  def report(*arguments)
    out, err = StringIO.new, StringIO.new
    status = Pitwall::CLI.run(["report", @file, *arguments], out: out, err: err)
    [status, out.string, err.string]
  end

  def json(*arguments) = JSON.parse(report("--format", "json", *arguments)[1])

  # The proof of a finding about requests.
  def test_two_recordings_give_a_verdict_on_requests
    files = { "slow.pit" => [30, 200], "quick.pit" => [10, 2] }.map do |name, (ms, queries)|
      path = File.join(@dir, name)
      File.binwrite(path, RecordingBuilder.build do |segment|
        segment.thread(1, "puma 1")
        20.times do |at|
          segment.row(stack: stack("call", "Order#load"), wall: ms * MS, cpu: ms * MS, labels: SHOW)
          segment.mark(SHOW, end_ns: (at + 1) * ms * 1_000_000, ns: (ms * 1_000_000) + (at * 1000))
        end
        segment.work(SHOW, count: 20, ns: 20 * ms * 1_000_000)
        place = ["Order#load", "/app/a.rb", 1, 2]
        segment.queries(SHOW, digest: 9, place: place, works: 20, count: 20 * queries, most: queries)
      end)
      path
    end
    compare = lambda do |*arguments|
      out, err = StringIO.new, StringIO.new
      [Pitwall::CLI.run(["compare", *arguments], out: out, err: err), out.string, err.string]
    end
    status, text, = compare.(*files)
    assert_equal 0, status
    assert_match(/orders#show: \S*quick\.pit is (?:2\.99|3\.00) times faster than \S*slow\.pit: request time 30\.01 /,
                 text.gsub(/\s+/, " "))
    assert_match(/: request time 30\.01 ms → 10\.01 ms \(99\.5% interval: /, text.gsub(/\s+/, " "))
    assert_match(/^orders#show +queries per request +200 +2 +×0\.0100 +fewer, exact$/, text)
    assert_equal 1, compare.(*files.reverse).first, "slower"
    results = JSON.parse(compare.(*files, "--format", "json")[1])["results"]
    assert_equal [["request_time", "faster"], ["queries_per_request", "fewer"]],
                 results.map { |one| one.values_at("metric", "verdict") }
    assert_includes compare.(*files, "--format", "markdown")[1], "times faster"
    page = File.join(@dir, "x.html")
    assert_equal 0, compare.(*files, "--format", "html", "--out", page).first
    shown = JSON.parse(page_json(File.read(page, encoding: "UTF-8")))
    assert_match(/times faster/, shown["verdicts"][0]["claim"])
    assert_equal ["orders#show", "request time", "30.01 ms", "10.01 ms"], shown["tables"][0]["rows"][0].first(4)
  end

  # Requests are not counted by thread.
  def test_one_thread_in_every_view
    [[], ["--tree"], ["--view", "requests"], ["--view", "labels"], ["--view", "lines"], ["--view", "threads"],
     ["--only-mine"]].each do |view|
      %w[text json markdown].each do |format|
        next if format == "markdown" && view != []

        status, text, err = report("--thread", "puma 1", "--format", format, *view)
        assert_equal [0, ""], [status, err], "#{view} #{format}"
        refute_empty text
      end
    end
  end

  def test_the_list
    _, text, = report("--view", "requests")
    assert_match(/request +took +began after +thread +what$/, text)
    assert_match(/^ +1 +42\.0 ms +8\.00 ms +puma 1 +route=orders#show$/, text)
    assert_match(/^ +3 +5\.00 ms +55\.0 ms +puma 2 +route=orders#show$/, text)
    assert_match(/of 10 requests that ended.*--request 1 --tree/m, text)
    rows = json("--view", "requests")["requests"]
    assert_equal [1, 2, 3], rows.map { |row| row["number"] }
    assert_equal({ "number" => 1, "labels" => SHOW, "duration_ns" => 42_000_000, "start_ns" => 8_000_000, "pid" => 7,
                   "thread_id" => 1, "thread" => "puma 1" }, rows.first)
    labelled = json("--view", "requests", "--label", "route=orders#index")["requests"]
    assert_equal [2], labelled.map { |row| row["number"] }
    assert_equal [3], json("--view", "requests", "--thread", "puma 2")["requests"].map { |row| row["number"] }
  end

  # A terminal of so many columns.
  def on_terminal(columns, *arguments)
    out = StringIO.new
    out.define_singleton_method(:tty?) { true }
    out.define_singleton_method(:winsize) { [40, columns] }
    Pitwall::CLI.run(["report", @file, *arguments], out: out, err: StringIO.new)
    out.string.gsub(/\e\[[\d;]*m/, "").lines(chomp: true)
  end

  # Labels give way in their middle, and only on a terminal.
  def test_long_labels
    route = { "route" => "api/v1/customers/addresses/validations/international/geocoding#index",
              "tenant" => "acme-international" }
    File.binwrite(@file, RecordingBuilder.build do |segment|
      segment.thread(1, "sidekiq.default/processor number 1")
      segment.row(stack: stack("a"), labels: route)
      segment.mark(route, end_ns: 50_000_000, ns: 42_000_000)
    end)
    whole = "sidekiq.default/processor number 1  route=#{route["route"]}, tenant=acme-international"
    [[], ["--out", File.join(@dir, "out")]].each do |options|
      text = report("--view", "requests", *options)[1]
      text = File.read(File.join(@dir, "out")) if options.any?
      assert_includes text.lines(chomp: true).map { |line| line.sub(/.*ms  /, "") }, whole
    end
    [60, 80, 120].each do |columns|
      lines = on_terminal(columns, "--view", "requests").drop_while { |line| !line.start_with?("request") }
      assert_operator lines.first(2).map(&:size).max, :<=, columns
      assert_match(/  sid\S*….*ber 1  route/, lines[1])
      assert_operator lines[1].count("…"), :>=, 2
      assert lines[1].end_with?("ational")
    end
    assert_match(/sidekiq\.d…r number 1  route=api\/v1\/c.*…/, on_terminal(100, "--view", "requests").join("\n"))
  end

  def test_no_line_of_the_list_is_longer_than_the_terminal
    report = Pitwall::Analyse::Report.new(Pitwall::Record.read(@file).segments)
    [60, 100, 160].each do |width|
      lines = DrawnView.body(report, :requests, file: "a.pit", width: width)
      assert_empty(lines.select { |line| Pitwall::Show::Text.width(line) > width })
    end
  end

  def test_one_request
    one = json("--request", "1", "--tree")
    # From 8 to 50 ms: the wait has other labels, what was not known yet counts.
    assert_equal 35_000_000, one["total"]
    own = ->(report) { report["methods"].to_h { |row| [row["name"], row["self"]] } }
    assert_equal({ "route" => 10_000_000, "Order#load" => 25_000_000, "call" => 0 }, own.call(one))
    two = json("--request", "2")
    assert_equal [15_000_000, { "Order#list" => 15_000_000, "call" => 0 }], [two["total"], own.call(two)]
    # A row that began before counts from there on.
    assert_equal 5_000_000, json("--request", "3")["total"]
    assert_equal 5_000_000, json("--request", "3", "--weight", "cpu")["total"]
    _, text, = report("--request", "1", "--tree")
    assert_match(/^only request 1 \(route=orders#show, took 42\.0 ms\): 35\.0 ms$/, text)
    assert_match(/Order#load/, text)
    refute_match(/Order#list|Other#work/, text)
  end

  def export(*arguments)
    out, err = StringIO.new(+"".b), StringIO.new
    status = Pitwall::CLI.run(["export", @file, "--out", "-", *arguments], out: out, err: err)
    [status, out.string, err.string]
  end

  # Request 1 in each format: 10 ms in route and 25 ms in load. Excludes the wait between them, the other thread and
  # other requests.
  def test_one_request_exported
    collapsed = export("--to", "collapsed", "--request", "1")[1]
    assert_equal ["call;Order#load 25000000", "call;route 10000000"], collapsed.lines(chomp: true).sort
    callgrind = export("--to", "callgrind", "--request", "1")[1]
    assert_match(/Order#load.*route|route.*Order#load/m, callgrind)
    refute_match(/Order#list|Other#work/, callgrind)
    speedscope = JSON.parse(export("--to", "speedscope", "--request", "1")[1])
    assert_equal [[10_000_000, 25_000_000]], speedscope["profiles"].map { |profile| profile["weights"] }
    firefox = JSON.parse(export("--to", "firefox", "--request", "1")[1])
    assert_equal ["puma 1"], firefox["threads"].map { |thread| thread["name"] }
    assert_equal [[10, 25, 0], [10.0, 10.0, 25.0]], firefox["threads"][0]["samples"].values_at("weight", "timeDeltas")
    names = firefox["threads"][0]["markers"]["name"].map { |name| firefox["shared"]["stringArray"][name] }
    assert_equal 1, names.count("request")
    _, bytes, = export("--to", "pprof", "--request", "1")
    profile = Zlib.gunzip(bytes)
    assert_includes profile, "Order#load"
    refute_match(/Order#list|Other#work/, profile)
    assert_equal [2, "", "pitwall: --request 1 is one request in one thread: leave out --label\n"],
                 export("--to", "pprof", "--request", "1", "--label", "a=b")
    assert_equal [2, "", "pitwall: no request 9: the recording has 1 to 3, see --view requests\n"],
                 export("--to", "firefox", "--request", "9")
  end

  # A thread whose fibers take turns: the other request's rows are a gap, and the clock goes on over them.
  def test_a_request_that_another_runs_within
    File.binwrite(@file, RecordingBuilder.build do |segment|
      segment.thread(1, "falcon")
      3.times do
        segment.row(stack: stack("a"), wall: 10 * MS, labels: SHOW)
        segment.row(stack: stack("b"), wall: 5 * MS, labels: INDEX)
      end
      segment.mark(SHOW, end_ns: 45_000_000, ns: 45_000_000)
    end)
    thread = JSON.parse(export("--to", "firefox", "--request", "1")[1])["threads"][0]
    assert_equal [[0.0, 10.0, 5.0, 10.0, 5.0, 10.0], [10, 0, 10, 0, 10, 0]],
                 thread["samples"].values_at("timeDeltas", "weight")
    assert_equal 30_000_000, json("--request", "1")["total"]
    assert_equal "a 30000000\n", export("--to", "collapsed", "--request", "1")[1]
  end

  def test_several_processes
    File.binwrite(@file, bytes + bytes(pid: 8))
    rows = json("--view", "requests")["requests"]
    assert_equal [7, 8, 7, 8, 7, 8], rows.map { |row| row["pid"] }
    assert_equal [8], json("--request", "2")["pids"]
    assert_match(/process +thread +what/, report("--view", "requests")[1])
  end

  def test_none
    File.binwrite(@file, RecordingBuilder.build { |segment| segment.row(stack: [["a"]]) })
    assert_match(/no requests were marked/, report("--view", "requests")[1])
    assert_equal [2, "", "pitwall: no request 1: the recording has none\n"], report("--request", "1")
  end

  def test_bad_input
    {
      %w[--request 4] => "no request 4: the recording has 1 to 3, see --view requests",
      %w[--request 0] => "no request 0",
      %w[--request 1 --thread x] => "leave out --thread", %w[--request 1 --label a=b] => "leave out --label",
      %w[--request 1 --view gc] => "leave out --view gc", %w[--request 1 --apart] => "leave out --apart"
    }.each do |arguments, message|
      status, out, err = report(*arguments)
      assert_equal [2, ""], [status, out], arguments.inspect
      assert_match(/\Apitwall: [^\n]*#{Regexp.escape(message)}[^\n]*\n\z/, err)
    end
  end
end
