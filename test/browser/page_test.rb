# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/browser"
require_relative "../support/recording_builder"
require_relative "../support/syscalls_recording"
require "uri"

# Pages in a real browser, opened from disk as users do.
class PageTest < Minitest::Test
  include Browser

  SHOP = "/srv/app/lib/shop.rb"
  MAIN = ["<main>", "/srv/app/run.rb", 1, 3].freeze
  CART = ["Shop::Cart#total", SHOP, 10, 12].freeze
  EACH = ["Array#each", "", 0, 0, 1].freeze
  BLOCK = ["block in Shop::Cart#total", SHOP, 11, 11].freeze
  TAX = ["Shop::Tax.of", SHOP, 30, 31].freeze
  FIB = ["Shop::Fib.fib", "/srv/app/lib/fib.rb", 2, 3].freeze
  SLEEP = ["Kernel#sleep", "", 0, 0, 1].freeze
  MARKING = ["(marking)", "", 0, 0, 2].freeze
  PICTURES = ENV["PITWALL_PICTURES"] # a folder, to look at

  # Where screenshots go, if anybody wants them.
  def pictures(name = "samples")
    return [] unless PICTURES

    [File.join(PICTURES, name).tap { |folder| FileUtils.mkdir_p(folder) }]
  end

  # One second in four quarters: cart, tax, fib, marking; a worker that sleeps half of the time.
  def shop(**head)
    RecordingBuilder.build(**head) do |segment|
      segment.thread 1, "main"
      segment.thread 2, "worker"
      25.times do
        segment.row stack: [MAIN, CART, EACH, BLOCK], wall: 10_000, cpu: 9_000
      end
      25.times { segment.row stack: [MAIN, CART, EACH, BLOCK, TAX], wall: 10_000, cpu: 10_000 }
      25.times { |at| segment.row stack: [MAIN, *([FIB] * (at % 5 + 1))], wall: 10_000, cpu: 10_000 }
      25.times { segment.row stack: [MAIN, CART, MARKING], wall: 10_000, cpu: 10_000 }
      50.times do |at|
        segment.row thread: 2, stack: [["Worker#run", SHOP, 50, 52], SLEEP], wall: 10_000, cpu: 0, state: 2, captures: 0
        cpu, state = at.even? ? [10_000, 0] : [0, 1]
        segment.row thread: 2, stack: [["Worker#run", SHOP, 50, 53], TAX], wall: 10_000, cpu: cpu, state: state
      end
      20.times do |at|
        major = at % 5 == 4
        segment.collection start: at * 50_000_000, marking: 400_000 + at * 10_000, sweeping: 200_000,
                           majors: major ? 1 : 0, major_cause: major ? 2 : 0,
                           allocated: 40_000 + at * 500, living: 90_000 + at * 100
      end
      segment.stats["elapsed_ns"] = 1_000_000_000
      yield segment if block_given?
    end
  end

  def page(bytes, *options)
    File.binwrite(file("x.pit"), bytes)
    result = pitwall("report", "x.pit", "--format", "html", "--out", "x.html", *options)
    assert result.status.success?, result.err
    file("x.html")
  end

  # Rows of a page's table by method's name.
  def by_name(rows, at = -2) = rows.to_h { |row| [row[at], row] }

  def test_every_view_of_a_recording_opens
    seen = in_browser("page.mjs", "recording", page(shop), *pictures)
    assert_empty seen["complaints"]
    assert_empty seen["nameless"]
    assert_equal "shop.rb · Pitwall", seen["title"]
    assert_equal ["Flame graph", "Call tree", "Methods", "Source", "Threads", "GC", "About"], seen["tabs"]
    assert_includes seen.dig("views", "Methods", "text"), "Shop::Tax.of"
    assert_includes seen.dig("views", "Methods", "hash"), "view=methods"
    assert_includes seen.dig("views", "Source", "text"), "lib/fib.rb"
    assert_includes seen.dig("views", "GC", "text"), "old objects"
    assert_match(/100 of garbage|20 runs, 4 major/, seen.dig("views", "GC", "text"))
    assert_equal "dark", seen["theme"]
  end

  def test_the_flame_graph_zooms_searches_and_keeps_its_state_in_the_address
    seen = in_browser("page.mjs", "flame", page(shop), *pictures, env: { "SEARCH" => "tax" })
    assert_empty seen["complaints"]
    assert_match(/zoom=n\d+/, seen.dig("clicked", "hash"))
    assert_includes seen.dig("clicked", "status"), "Array#each"
    assert_equal seen.dig("clicked", "hash")[/n(\d+)/, 1].to_i, seen.dig("reloaded", "focus")
    assert_operator seen.dig("reloaded", "view").then { |from, to| to - from }, :<, 1
    assert_equal ["", [0, 1]], seen["escaped"].values_at("hash", "view")
    assert_includes seen["arrows"], "Shop::Cart#total"
    assert_match(/zoom=n\d+/, seen["entered"])
    assert_in_delta 0.5, seen["plus"].then { |from, to| to - from }, 1e-6
    assert_operator seen["wheel"].then { |from, to| to - from }, :<, 0.9
    assert_match(/1 method matches?: .*750 ms, 37\.5%|1 method match: 750 ms, 37\.5%/, seen.dig("search", "found"))
    assert_includes seen.dig("search", "hash"), "search=tax"
    refute_includes seen["cleared"], "search"
    assert_includes seen.dig("time", "hash"), "order=time"
    assert_order_of_time(seen["time"])
    assert_includes seen["help"], "callers and callees"
    assert seen["helpClosed"]
  end

  # In quarters: cart, cart with tax, fib up to five deep, marking under cart.
  def assert_order_of_time(time)
    width = time["width"]
    boxes = time["boxes"].map { |name, depth, left, right| [name, depth, left.fdiv(width), right.fdiv(width)] }
    tax = boxes.find { |name, *| name == "Shop::Tax.of" }
    assert_in_delta 0.25, tax[2], 0.01
    assert_in_delta 0.5, tax[3], 0.01
    assert_equal [2, 3, 4, 5, 6], boxes.select { |name, *| name == "Shop::Fib.fib" }.map { |box| box[1] }.uniq.sort
    assert_in_delta 0.75, boxes.find { |name, *| name == "(marking)" }[2], 0.01
  end

  def test_figures_are_those_of_the_report_and_follow_the_range
    html = page(shop)
    seen = in_browser("page.mjs", "figures", html, *pictures)
    assert_empty seen["complaints"]
    report = JSON.parse(pitwall("report", "x.pit", "--format", "json").out)
    assert_equal figures(report), shown(seen["methods"])
    cpu = JSON.parse(pitwall("report", "x.pit", "--format", "json", "--weight", "cpu").out)
    assert_equal figures(cpu), shown(seen.dig("cpu", "methods"))
    %w[apart caller].each do |how|
      report = JSON.parse(pitwall("report", "x.pit", "--format", "json", "--gc", how).out)
      assert_equal figures(report), shown(seen.dig("gc", how)), how
    end
    assert_brushed(seen["brushed"])
    assert_operator seen.dig("moved", "to"), :>, seen.dig("brushed", "filter", "to")
    assert_equal [nil, nil], seen["whole"].values_at("from", "to")
    assert_neighbours(seen["chosen"])
    assert_equal ["Kernel#sleep", "Shop::Tax.of", "Worker#run"], by_name(seen.dig("thread", "methods")).keys.sort
  end

  # Each state for a fifth, and two that only a later Pitwall knows.
  def test_states_that_pitwall_does_not_know_are_told_as_such
    html = page(RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      [[0, CART], [2, SLEEP], [7, TAX], [200, FIB], [4, CART]].each do |state, leaf|
        segment.row stack: [MAIN, leaf], wall: 200_000, cpu: 0, state: state
      end
      segment.stats["elapsed_ns"] = 1_000_000_000
    end)
    seen = in_browser("page.mjs", "states", html, *pictures, env: { "STATE" => "state 200" })
    assert_empty seen["complaints"]
    titles = ["running", "blocked", "off the CPU", "state 7", "state 200"]
    assert_equal titles, seen["legend"]
    assert_equal ["all", *titles], seen["offered"]
    shares = titles.map { |title| "#{title} 20.0%" }.join(", ")
    assert_equal [shares], seen["bars"]
    assert seen["lanes"].first.end_with?(shares), seen["lanes"].first
    colours = seen["colours"].first
    assert_equal [4, 5], [colours.uniq.size, colours.size]
    assert_empty colours.uniq - seen["painted"].first
    assert_equal "all", seen["odd"]
    assert_match(/state=\d/, seen.dig("chosen", "hash"))
    names = by_name(seen.dig("chosen", "methods")).keys.map { |name| name.sub("<main>", "Object#main") }
    assert_equal ["Object#main", "Shop::Fib.fib"].sort, names.sort
  end

  # Half of it is gone by brushing the second quarter, in which main was in tax.
  def assert_brushed(brushed)
    from, to = brushed["filter"].values_at("from", "to")
    assert_in_delta 0.25e9, from, 0.01e9
    assert_in_delta 0.5e9, to, 0.01e9
    assert_in_delta 2 * (to - from), brushed["total"], 1
    names = by_name(brushed["methods"]).transform_values { |row| row[1] }
    assert_match(/37\d ms|38\d ms/, names.fetch("Shop::Tax.of"))
    refute_includes names.keys, "Shop::Fib.fib"
    assert_match(/25\d(\.\d)? ms|24\d ms/, brushed["Threads"])
    refute_includes brushed["Source"], "fib.rb"
    assert_match(/250 ms\s+0 s\s+250 ms\s+.\s+Worker#run/, brushed["Call tree"])
    assert_match(/time=[\d.]+ms\.\.[\d.]+ms/, brushed["hash"])
  end

  def assert_neighbours(chosen)
    method = chosen["name"]
    report = JSON.parse(pitwall("report", "x.pit", "--format", "json", "--callers", method, "--callees", method).out)
    %w[callers callees].each do |kind|
      rows = report.dig(kind, "methods").select { |row| row["total"].positive? }
      wanted = rows.map do |row|
        shares = row.values_at("total_percent", "method_percent").map { |share| share.round(1) }
        [row["name"] || "(start of the thread)", *shares]
      end
      assert_equal wanted.sort, chosen[kind].map { |row| [row[3], row[0].to_f, row[1].to_f] }.sort, kind
    end
    assert_chains(chosen["chains"], method)
  end

  # What is open at first: the way from the method to where chains part.
  def assert_chains(chains, method)
    report = JSON.parse(pitwall("report", "x.pit", "--format", "json", "--view", "graph", "--symbol", method).out)
    wanted = report.dig("graph", "chains").map { |row| [row["name"], row["total_percent"].round(1)] }
    found = chains.map { |row| [row[2].sub(/\A[▾▸]/, ""), row[0].to_f] }
    assert_equal method, found.first.first
    assert_equal wanted.first(found.size), found
  end

  # Name → self and total in percent.
  def figures(report)
    rows = report["methods"].reject { |row| row["total"].zero? }
    rows.to_h { |row| [row["name"], row.values_at("self_percent", "total_percent").map { |share| share.round(1) }] }
  end

  def shown(rows) = rows.to_h { |row| [row[-2], [row[0], row[2]].map(&:to_f)] }

  def test_view_serves_the_page_to_the_browser
    File.binwrite(file("x.pit"), shop)
    pid = pitwall_start("view", "x.pit", "--no-open")
    address = eventually { File.exist?(file("out")) && File.read(file("out"))[/.*(?=\n)/] }
    seen = in_browser("page.mjs", "recording", address)
    assert_empty seen["complaints"]
    assert_includes seen.dig("views", "Methods", "text"), "Shop::Tax.of"
  ensure
    Process.kill("KILL", pid) && Process.wait(pid) if pid
  end

  # A program that ended at once; and several processes, whose nodes and threads have the same numbers.
  def test_recordings_of_nothing_and_of_several_processes
    seen = in_browser("page.mjs", "recording", page(RecordingBuilder.build { nil }))
    assert_empty seen["complaints"]
    assert_equal ["About"], seen["tabs"]
    several = shop + shop(pid: 4243, started_at_ns: RecordingBuilder::HEAD["started_at_ns"] + 500_000_000)
    seen = in_browser("page.mjs", "recording", page(several), *pictures("several"))
    assert_empty seen["complaints"]
    assert_match(/4242\s+main.*4243\s+main/m, seen.dig("views", "Threads", "text"))
    assert_match(/75\.0%|37\.5%\s+1\.50 s/, seen.dig("views", "Methods", "text"))
  end

  # A second of one process. main and worker are lists of [the stack's leaf, ms, state]; Pitwall's own thread sleeps.
  # Each process ran a request, known by the worker's id.
  def follows(at, main:, worker:, route:, work:)
    ids = [1, 2].rotate(at)
    started = RecordingBuilder::HEAD["started_at_ns"] + at * 1_000_000_000
    RecordingBuilder.build(pid: 7, started_at_ns: started) do |segment|
      ["main", "", "pitwall continuous"].zip([*ids, 3]) do |name, id|
        segment.thread(id, name, native_id: 100 + name.size)
      end
      [*ids, 3].zip([main, worker, [[SLEEP, 1000, 2]]]) do |id, parts|
        parts.each do |leaf, ms, state|
          cpu = state.zero? ? ms * 1000 : 0
          segment.row(thread: id, stack: [leaf], wall: ms * 1000, cpu: cpu, state: state)
        end
      end
      segment.mark({ "route" => route }, thread: ids[1], end_ns: 900_000_000, ns: work * 1_000_000)
      segment.work({ "route" => route }, count: 1, ns: work * 1_000_000)
      segment.stats["elapsed_ns"] = 1_000_000_000
    end
  end

  # A folder as continuous recording leaves it.
  def test_a_thread_of_several_files_is_one
    FileUtils.mkdir_p(file("d"))
    first = follows(0, main: [[CART, 1000, 0]], worker: [[SLEEP, 500, 2], [TAX, 500, 0]], route: "a", work: 400)
    second = follows(1, main: [[FIB, 1000, 0]], worker: [[TAX, 250, 0], [FIB, 750, 0]], route: "b", work: 300)
    File.binwrite(file("d/1.pit"), first)
    File.binwrite(file("d/2.pit"), second)
    result = pitwall("report", "d", "--format", "html", "--out", "x.html")
    assert result.status.success?, result.err
    env = { "THREAD" => "thread 2", "OLD" => JSON.generate(%w[0.2 1.1 1.2 0.3 7.7 odd]) }
    seen = in_browser("page.mjs", "files", file("x.html"), *pictures("files"), env: env)
    assert_empty seen["complaints"] + seen["nameless"]
    assert_includes seen["facts"], "2 threads"
    refute_includes seen["facts"], "process"
    assert_equal ["main: 2.00 s wall, 2.00 s CPU; running 100%",
                  "thread 2: 2.00 s wall, 1.50 s CPU; running 75.0%, blocked 25.0%"], seen["lanes"].values_at(0, 1)
    assert_match(/\ARequests of thread 2: 2;/, seen["lanes"][2])
    assert_equal 3, seen["lanes"].size
    assert_equal ["all but idle", "all", "main", "thread 2"], seen["offered"]
    threads = seen["threads"].map { |row| row.values_at(0, 1, -1) }.sort_by(&:last)
    assert_equal [["2.00 s", "2.00 s", "main"], ["2.00 s", "1.50 s", "thread 2"]], threads
    assert_includes seen["hash"], "thread=0.2"
    weights = by_name(seen["methods"]).transform_values { |row| row[1] }
    assert_equal({ "Shop::Tax.of" => "750 ms", "Shop::Fib.fib" => "750 ms", "Kernel#sleep" => "500 ms" }, weights)
    assert_equal ["route: a", "route: b"], seen["requests"].map { |row| row[-2] }
    assert_equal ["thread 2"], seen["requests"].map(&:last).uniq
    assert_equal [["thread 2"]], seen["request"].map { |row| [row.last] }
    order = [["Kernel#sleep", 0, 0.25], ["Shop::Tax.of", 0.25, 0.5], ["Shop::Tax.of", 0.5, 0.625],
             ["Shop::Fib.fib", 0.625, 1]]
    joined = order[0, 1] + [["Shop::Tax.of", 0.25, 0.625], order[3]]
    assert_equal joined, (seen["time"].map { |name, *ends| [name, *ends.map { |at| (at * 200).round / 200.0 }] })
    assert_equal %w[0.2 0.2 0.1 busy busy busy], seen["old"].values_at("0.2", "1.1", "1.2", "0.3", "7.7", "odd")
  end

  # A third of the time is one route's, which the slowest request belongs to.
  def test_labels_filter_every_view
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "puma 1"
      30.times do |at|
        route = at % 3 == 0 ? "orders#show" : "carts#index"
        labels = { "route" => route, "job" => "web" }
        segment.row stack: [MAIN, at % 3 == 0 ? TAX : CART], wall: 10_000, cpu: 10_000, labels: labels
        segment.mark({ "route" => route, "job" => "web" }, end_ns: (at + 1) * 10_000_000, ns: 8_000_000 + at * 1000)
      end
      segment.row stack: [MAIN], wall: 10_000, cpu: 0
      segment.work({ "route" => "orders#show", "job" => "web" }, count: 10, ns: 80_000_000)
      segment.work({ "route" => "carts#index", "job" => "web" }, count: 20, ns: 160_000_000)
      segment.counted({ "route" => "carts#index", "job" => "web" }, "class_serial", 5, count: 2)
      segment.counted({ "route" => "carts#index", "job" => "web" }, "global_cvar_state", 0, count: 2)
      segment.stats["elapsed_ns"] = 310_000_000
    end
    seen = in_browser("page.mjs", "labels", page(bytes), *pictures("labels"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_includes seen["tabs"], "Labels"
    assert_equal [["66.7%", "200 ms", "200 ms", "20", "8.00 ms", "2.50", "carts#index"],
                  ["33.3%", "100 ms", "100 ms", "10", "8.00 ms", "", "orders#show"]], seen["rows"].first(2)
    assert_includes seen["hash"], "label=route%3Dorders%23show"
    assert_equal ["<main>", "Shop::Tax.of"], by_name(seen["methods"]).keys.sort
    assert_equal ["100%", "100 ms"], by_name(seen["methods"]).fetch("Shop::Tax.of").first(2)
  end

  # The figures of pitwall report --view tests; a test that is chosen is all that is looked at.
  def test_tests
    slow, quick = %w[slow <b>].map { |name| { "test" => "CartTest#test_#{name}" } }
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [MAIN, TAX], wall: 40_000, cpu: 10_000, labels: slow
      segment.row stack: [MAIN, CART], wall: 5_000, cpu: 5_000, labels: quick
      segment.mark slow, end_ns: 40_000_000, ns: 40_000_000
      segment.test slow, ns: 40_000_000, cpu: 10_000_000, objects: 1234, gc: 3_000_000
      segment.test quick, count: 2, counted: 1, ns: 5_000_000, cpu: 4_000_000, objects: 7
      segment.counted slow, "class_serial", 1234
      segment.counted slow, "global_cvar_state", 0
      segment.counted quick, "class_serial", 3
      segment.stats["elapsed_ns"] = 45_000_000
    end
    seen = in_browser("page.mjs", "tests", page(bytes), *pictures("tests"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_match(/\A2 tests took 45\.0 ms\. Tests that ran beside others have no objects/, seen["note"])
    assert_match(/ Counters are the process’s: 1 of 2 ran beside others\. Not counted by this Ruby: cons/, seen["note"])
    assert_equal %w[took CPU\ time objects GC serials runs request test],
                 (seen["heads"].map { |head| head[/\w+( \w+)?/] })
    assert_equal [["40.0 ms", "10.0 ms", "1,234", "3.00 ms", "1,234", "1", "1", "CartTest#test_slow"],
                  ["5.00 ms", "4.00 ms", "", "", "", "2", "", "CartTest#test_<b>"]], seen["rows"]
    assert_includes URI.decode_www_form_component(seen["hash"]), "label=test=CartTest#test_slow"
    assert_includes by_name(seen["methods"]).keys, "Shop::Tax.of"
    refute_includes by_name(seen["methods"]).keys, "Shop::Cart#total"
  end

  # As report --view requests and --view queries have it: test/cli/queries_test.rb.
  def test_queries
    slow, fine = %w[slow fine].map { |name| { "route" => name } }
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [MAIN, TAX], wall: 40_000, cpu: 10_000, labels: slow
      segment.row stack: [MAIN, CART], wall: 5_000, cpu: 5_000, labels: fine
      segment.mark slow, end_ns: 40_000_000, ns: 40_000_000
      segment.mark fine, end_ns: 45_000_000, ns: 5_000_000
      segment.work slow, count: 1, ns: 40_000_000
      segment.work fine, count: 1, ns: 5_000_000
      segment.queries slow, digest: 0x3f2a90c1d4e5, place: TAX, works: 1, count: 200, ns: 10_000_000
      segment.queries slow, digest: 0x3f2a90c1d4e5, place: TAX, kind: 1, works: 1, count: 3
      segment.queries fine, digest: 7, place: CART, works: 1, count: 2, ns: 500_000
      segment.queries_of 40_000_000, digest: 0x3f2a90c1d4e5, place: TAX, count: 200, ns: 10_000_000
      segment.queries_of 40_000_000, digest: 0x3f2a90c1d4e5, place: TAX, kind: 1, count: 3
      segment.queries_of 45_000_000, digest: 7, place: CART, count: 2, ns: 500_000
      segment.stats["elapsed_ns"] = 45_000_000
    end
    seen = in_browser("page.mjs", "queries", page(bytes), *pictures("queries"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_equal [%w[1 40.0\ ms 200 203 25.0%], %w[2 5.00\ ms 2 2 10.0%]], (seen["requests"].map { |row| row.first(5) })
    assert_match(/queries: 200, the same from one line up to 203 times, 10\.0 ms \(25\.0% of its time\), 3 answered by/,
                 seen["detail"])
    assert_match(/ \(25\.0% of its time\), 3 answered by a cache/, seen["detail"])
    assert_equal [%w[200 10.0\ ms 25.0%], ["3", "0 s", ""]], (seen["asked"].map { |row| row.first(3) })
    assert_match(/\A202 queries in 2 requests \(101 a request\), 10\.5 ms: 23\.3% of the requests’ time; 3 answered /,
                 seen["note"])
    assert_match(/; 3 answered by a cache\. A query is told/, seen["note"])
    assert_equal [["200", "200", "200", "10.0 ms", "22.2%", "3f2a90c1"], ["2", "2", "2", "500 µs", "1.1%", "00000000"]],
                 (seen["queries"].map { |row| row.first(6) }.first(2))
    assert_equal ["2"], seen["fine"].map(&:first)
  end

  # The figures of pitwall report --view growth.
  def test_growth
    bytes = RecordingBuilder.build(mode: "none") do |segment|
      { 5 => "Line<b>", 6 => "String", 7 => "Hash" }.each do |id, name|
        segment.site(id, stack: [["Shop#keep", "/srv/a.rb", 1, id]], class_name: name,
                         counters: [9000, 0, 0, 0, 0, 0, 0, 900_000, 3000, 0, 300_000])
      end
      (1..30).each do |at|
        segment.living(at, at_ns: at * 2_000_000_000, sites: { 5 => at * 100, 6 => at * 40, 7 => 500 },
                           rss: 50_000_000 + (at * 900_000), flags: 1)
      end
      segment.holders([[5, 0, "Shop::LINES (Array of 3,000)"], [5, 0, "Line<b>"]])
      segment.stats["elapsed_ns"] = 60_000_000_000
    end
    seen = in_browser("page.mjs", "growth", page(bytes), *pictures("growth"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_match(/23 collections looked at, 23 of them full, after 15\.0 s of warm-up/, seen["notes"])
    lines = ["+3,000", "3,000 … 3,000", "+293 KiB", "+2,200", "+215 KiB", "3,000", "1%", "Line<b>", "/srv/a.rb:5"]
    assert_equal [lines, ["+1,200", "String"]],
                 [seen["rows"][0], seen["rows"][1].values_at(0, 7)]
    assert_equal ["Living objects of these places over time", "Resident memory over time"], seen["charts"]
    assert_includes seen["holders"], "is held by Shop::LINES (Array of 3,000) → Line<b>"
    assert_includes seen["chosen"], "String /srv/a.rb:6 is held by nothing that was found"
  end

  def stack(*names) = names.map { |name| [name, "/srv/a.rb", 1, 2] }

  # Two threads. The first waits from 0 to 10 ms, runs show from 10 to 50 ms (unknown for its first 10 ms), waits from
  # 45 to 55 ms, and runs index from 55 to 70 ms.
  def requests(pid: 7)
    show, index = [{ "route" => "orders#show" }, { "route" => "orders#index" }]
    RecordingBuilder.build(pid: pid) do |segment|
      segment.thread(1, "puma 1")
      segment.thread(2, "puma 2")
      [[1, 10, 2, {}, "wait"], [1, 10, 0, { "route" => "(unknown)" }, "call", "route"],
       [1, 25, 0, show, "call", "Order#load"], [2, 60, 0, show, "call", "Other#work"],
       [1, 10, 2, {}, "wait"], [1, 15, 0, index, "call", "Order#list"]].each do |thread, ms, state, labels, *names|
        cpu = state.zero? ? ms * 500 : 0
        segment.row thread: thread, stack: stack(*names), wall: ms * 1000, cpu: cpu, state: state, labels: labels
      end
      segment.mark show, end_ns: 50_000_000, ns: 42_000_000
      segment.mark index, end_ns: 70_000_000, ns: 15_000_000
      segment.mark show, thread: 2, end_ns: 60_000_000, ns: 5_000_000
      segment.mark show, thread: 3, end_ns: 61_000_000, ns: 1_000_000
      segment.counter_of 50_000_000, "class_serial", 12
      segment.counter_of 50_000_000, "global_cvar_state", 0
      segment.counter_of 70_000_000, "class_serial", 0
      segment.work show, count: 9, ns: 50_000_000
      segment.work index, count: 1, ns: 15_000_000
      segment.stats["elapsed_ns"] = 70_000_000
    end
  end

  # On the time line, in a table, and as what every view is narrowed to: the figures of pitwall report --request.
  def test_requests
    seen = in_browser("page.mjs", "requests", page(requests), *pictures("requests"))
    assert_empty seen["complaints"] + seen["nameless"]
    report = ->(*options) { JSON.parse(pitwall("report", "x.pit", "--format", "json", *options).out) }
    requests = report.call("--view", "requests")["requests"]
    listed = requests.map do |row|
      thread = row["thread"].empty? ? "thread #{row["thread_id"]}" : row["thread"]
      [row["number"].to_s, row["labels"].map { |pair| pair.join(": ") }.join(", "), thread]
    end
    assert_equal listed, seen["rows"].map { |row| row.values_at(0, -2, -1) }
    assert_equal ["42.0 ms", "8.00 ms", "12"], seen["rows"].first[1, 3]
    assert_equal ["0", "", ""], seen["rows"].drop(1).map { |row| row[3] }
    assert_equal [false, true, false, true], seen["lanes"], "each thread, and its requests below it"
    one = report.call("--request", "1")
    assert_includes seen.dig("chosen", "hash"), "request=1"
    assert_equal [8e6, 50e6, 1], seen.dig("chosen", "filter").values_at("from", "to", "request")
    assert_match(/request 1: route: orders#show, 42\.0 ms/, seen.dig("chosen", "chips").join)
    assert_match(/sampled 35\.0 ms, CPU 17\.5 ms, 2 samples · running 100%/, seen.dig("chosen", "text"))
    assert_equal %w[Order#load call route], seen["boxes"].uniq.sort
    assert_equal [["call", "35.0 ms"], ["Order#load", "25.0 ms"], ["route", "10.0 ms"]],
                 seen["tree"].map { |row| [row[-1][/[\w#]+\z/], row[1]] }
    assert_equal figures(one), shown(seen["methods"])
    assert_equal [["35.0 ms", "17.5 ms", "puma 1"]], seen["threads"].map { |row| row.values_at(0, 1, -1) }
    assert_equal ["", []], [seen.dig("away", "hash")[/request=\d+/].to_s, seen.dig("away", "chips")]
    assert_match(/\ARequests of puma 1: 2; arrow keys/, seen["lane"])
    first, second, slower = seen["keys"].values_at("first", "second", "slower")
    assert_match(/route: orders#show · request 1 · 42\.0 ms · began after 8\.00 ms · thread puma 1/, first)
    assert_match(/orders#index · request 2/, second)
    assert_equal first, slower
    assert_includes seen.dig("keys", "hash"), "request=1"
    refute_includes seen.dig("keys", "escaped"), "request="
    assert_match(/route: orders#show\s+request 1 · 42\.0 ms/, seen["hovered"])
    assert_includes seen["clicked"], "request=1"
    refute_includes seen["clickedBeside"], "request="
  end

  # The same as pitwall report --only-mine, and the findings that the report begins with.
  def test_only_mine
    seen = in_browser("page.mjs", "mine", page(shop), *pictures("mine"))
    assert_empty seen["complaints"] + seen["nameless"]
    json = ->(*options) { JSON.parse(pitwall("report", "x.pit", "--format", "json", *options).out) }
    mine = figures(json.call("--only-mine"))
    assert_equal mine, shown(seen.dig("mine", "methods"))
    refute_equal mine, shown(seen["all"])
    assert_equal figures(json.call("--only-mine", "--gc", "caller")), shown(seen["caller"])
    assert_includes seen.dig("mine", "hash"), "only=app"
    assert_equal "true", seen.dig("mine", "pressed")
    assert_empty (seen["heavy"] | seen["time"]) - mine.keys
    assert_equal [shown(seen["all"]), nil], [shown(seen.dig("again", "methods")), seen.dig("again", "hash")[/only/]]
    findings = json.call["findings"]
    assert_equal findings.map { |finding| finding["text"] },
                 seen["findings"].map { |text| text[/\A[^\n]*?\.(?=\s|\z)/] }
    assert_includes seen["findings"].first, findings.first["more"]
    assert_includes seen["findings"].first, findings.first["proof"]
  end

  # One row from 1280 pixels on, and nothing beyond the window at any width.
  def test_the_toolbar
    seen = in_browser("page.mjs", "toolbar", page(shop), *pictures("toolbar"))
    assert_empty seen["complaints"]
    one_row = seen["rows"].values_at("1400", "1280", "1024", "400").map { |row| row["one"] }
    assert_equal [true, true, true, false], one_row
    assert_equal [0, 0], seen["rows"].values_at("1400", "1280").map { |row| row["hidden"] }
    assert_equal [[false, true]], seen["rows"].values.map { |row| row.values_at("beyond", "panel") }.uniq
    assert_equal [false, "SUMMARY"], seen["escaped"]
    assert_equal ["thread worker", "blocked", "collection apart"], seen["chips"].map { |text| text.delete("×").strip }
    refute seen["open"], "a click beside the menu closes it"
    filter = seen.dig("away", "filter").values_at("thread", "state", "gc")
    assert_equal [0, "busy", "all", ""], [seen.dig("away", "chips"), *filter]
  end

  # Of the cart's 750 ms: 250 its own block's, 250 in tax, 250 of marking; the worker's tax is not below it.
  CART_ALONE = { "Shop::Cart#total" => [0.0, 100.0], "Array#each" => [0.0, 66.7],
                 "block in Shop::Cart#total" => [33.3, 66.7], "Shop::Tax.of" => [33.3, 33.3],
                 "(marking)" => [33.3, 33.3] }.freeze

  def test_stacks_from_one_method_on
    seen = in_browser("page.mjs", "root", page(shop), *pictures("root"), env: { "METHOD" => "Shop::Tax.of" })
    assert_empty seen["complaints"] + seen["nameless"]
    assert_match(/root=\d+/, seen.dig("key", "hash"))
    chips = seen.dig("key", "chips").join.delete("×").strip
    assert_equal ["stacks from Shop::Cart#total", 750e6], [chips, seen.dig("key", "total")]
    assert_equal CART_ALONE.keys.sort, seen.dig("key", "drawn").sort
    assert_equal CART_ALONE.keys.sort, seen["time"].sort
    assert_equal [CART_ALONE, CART_ALONE], [shown(seen["methods"]), shown(seen["reloaded"])]
    refute_includes seen.dig("away", "hash"), "root"
    report = JSON.parse(pitwall("report", "x.pit", "--format", "json").out)
    assert_equal figures(report), shown(seen.dig("away", "methods"))
    assert_equal ["Focus: samples with it", "Root: stacks from here on", "Hide", "Blackbox", "Callers and callees",
                  "Bottom up", "Source"],
                 (seen["menu"].map { |text| text[/[^\n]+/].strip })
    assert_equal [{ "Shop::Tax.of" => [100.0, 100.0] }, 0],
                 [shown(seen.dig("row", "methods")), seen.dig("row", "menus")]
    assert_equal [{ "Shop::Tax.of" => [100.0, 100.0] }, 0], [shown(seen["mine"]), seen["escaped"]]
  end

  # The same as pitwall report --view bottom-up.
  def test_the_tree_from_the_ends
    seen = in_browser("page.mjs", "inverted", page(shop), *pictures("inverted"))
    assert_empty seen["complaints"]
    report = JSON.parse(pitwall("report", "x.pit", "--view", "bottom-up", "--format", "json").out)
    rows = report["bottom_up"].map { |row| row.values_at("depth", "name", "total") }
    assert_equal rows.sort, seen["rows"].map { |depth, name, total| [depth, name, total.round] }.sort
    assert_includes seen["hash"], "inverted=1"
    assert_equal %w[total wall method where], seen["heads"]
    assert_equal ["true", true], [seen["pressed"], seen.dig("zoomed", "hash").match?(/zoom=[\d.]+%7E/)]
    root = rows.select { |depth, *| depth.zero? }.max_by(&:last)[1]
    assert_match(/\A#{Regexp.escape(root)} .*own /, seen.dig("zoomed", "status"))
    assert_operator seen["reloaded"].then { |from, to| to - from }, :<, 1
    refute_match(/inverted|zoom/, seen["again"])
  end

  # Tax is below the cart and below the worker.
  def test_a_search_goes_from_match_to_match
    seen = in_browser("page.mjs", "steps", page(shop), *pictures("steps"), env: { "SEARCH" => "tax" })
    assert_empty seen["complaints"] + seen["nameless"]
    assert_equal(["‹ 1 of 2 ›", "‹ 2 of 2 ›", "‹ 2 of 2 ›"], seen.values_at("first", "second", "last").map(&:first))
    words = seen.values_at("first", "second", "last").map(&:last)
    assert_equal ["Shop::Tax.of"], words.map { |text| text[/\A\S+/] }.uniq
    assert_equal words[1], words[2]
    refute_equal words[0], words[1]
    assert_equal 3, seen["tree"].grep(/Shop::Tax\.of/).size
    assert_equal seen["tree"][0], seen["tree"][2]
    refute_equal seen["tree"][0], seen["tree"][1]
  end

  def test_names_are_shortened_in_the_middle
    name = "Warehouse::Replenishment::ForecastingController#orders_of_the_week_after"
    path = "/srv/app/lib/warehouse/replenishment/controllers/with/a/long/path/forecasting_controller.rb"
    html = page(RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [MAIN, [name, path, 10, 12]], wall: 10_000, cpu: 10_000
    end)
    seen = in_browser("page.mjs", "names", html, *pictures("names"), env: { "SEARCH" => "Forecasting" })
    assert_empty seen["complaints"]
    assert_equal [name, path], (seen["cells"].map { |cell| cell["title"][/\A[^:]*(?:::[^:]+)*/].sub(/:\d+\z/, "") })
    seen["cells"].each do |cell|
      assert cell["within"], cell
      assert_equal cell["text"], cell["copied"], "no line break where it is cut"
      assert_operator cell.dig("head", "wide"), :>, cell.dig("head", "room"), "the beginning is cut"
      assert_operator cell.dig("tail", "wide"), :<=, cell.dig("tail", "room") + 1, "the end is whole"
    end
    tails = seen["cells"].map { |cell| cell.dig("tail", "text").delete_prefix("/") }
    assert_equal ["#orders_of_the_week_after", "forecasting_controller.rb:10"], tails
    assert_equal name, seen["drawn"].first if seen["drawn"].first.length == name.length
    assert_match(/\AWare.*….*after\z/, seen["drawn"][1])
    seen["drawn"].each_cons(2) { |longer, shorter| assert_operator longer.size, :>, shorter.size }
  end

  # The figures of what ran, and the line of the text report.
  # Waiting names the methods that called native code.
  def test_waiting_where_native_frames_are_shown
    read = [["IO#read", "", 0, 0, 1], ["rb_io_read", "/lib/libruby.so", 0, 0, 3], ["read", "/lib/libc.so.6", 0, 0, 3]]
    path = page(shop { |segment| segment.row stack: [MAIN, *read], wall: 2_000_000, cpu: 0, state: 2 }, "--native")
    seen = in_browser("page.mjs", "waiting", path)
    assert_empty seen["complaints"]
    told = pitwall("report", "x.pit", "--native").out[/^waiting: (.*?); below/m, 1].gsub(/\s+/, " ")
    assert_match(/: IO#read 2\.00 s/, told)
    assert_equal "Waiting #{told}. Below is the time in which threads ran. Count waiting, too", seen["line"]
  end

  def test_waiting_stands_apart
    seen = in_browser("page.mjs", "waiting", page(shop), *pictures("waiting"))
    assert_empty seen["complaints"] + seen["nameless"]
    report = JSON.parse(pitwall("report", "x.pit", "--format", "json").out)
    work = figures("methods" => report.dig("work", "methods"))
    assert_equal [work, work], [shown(seen["methods"]), shown(seen["again"])]
    assert_equal figures(report), shown(seen.dig("all", "methods"))
    told = pitwall("report", "x.pit").out[/^waiting: (.*?); below/m, 1].gsub(/\s+/, " ")
    assert_equal "Waiting #{told}. Below is the time in which threads ran. Count waiting, too", seen["line"]
    assert_match(/\AWaiting #{Regexp.escape(told)}\. The figures below count it/, seen.dig("all", "line"))
    assert_includes seen.dig("all", "hash"), "waiting=all"
    assert seen.dig("cpu", "hidden")
    cpu = JSON.parse(pitwall("report", "x.pit", "--format", "json", "--weight", "cpu").out)
    assert_equal figures(cpu), shown(seen.dig("cpu", "methods"))
    assert_equal [report.dig("work", "total"), true], seen.values_at("total", "time")
    assert_match(/1\.00 s\s+250 ms/, seen["threads"])
    refute seen["beyond"]
  end

  # Summary, findings and the tables that a server's text report begins with.
  def test_the_overview_of_a_wide_page
    seen = in_browser("page.mjs", "overview", page(shop), *pictures("overview"))
    assert_empty seen["complaints"] + seen["nameless"]
    report = JSON.parse(pitwall("report", "x.pit", "--format", "json").out)
    count = report["findings"].size
    assert_operator count, :>, 0
    beside = { "overview" => true, "beside" => count, "above" => count, "beyond" => false }
    narrow = beside.merge("overview" => false, "beside" => 0)
    assert_equal [beside, beside, narrow], seen["look"].values_at("1400", "1900", "1399")
    assert_equal({ "above" => count, "beside" => 0 }, seen["methods"])
    shares = figures("methods" => report.dig("work", "methods")).transform_values(&:first)
    work = shares.reject { |_, share| share.zero? }
    assert_equal work, seen["all"].to_h { |row| [row.last, row.first.to_f] }
    mine = JSON.parse(pitwall("report", "x.pit", "--format", "json", "--only-mine", "--state", "running").out)
    own = figures(mine).transform_values(&:first).reject { |name, share| share.zero? || name.start_with?("(") }
    assert_equal own, seen["mine"].to_h { |row| [row.last, row.first.to_f] }
    assert_equal ["Shop::Tax.of", "block in Shop::Cart#total"], seen["brushed"].sort, "of the first quarter"
    assert_match(/wall time\s+1\.00 s/, seen["text"])
    assert_match(/collection\s+\S+ ms in 20 runs/, seen["text"])
    assert_match(/view=methods.*method=\d/, seen["hash"])
  end

  # More of it: test/cli/source_history_test.rb.
  def test_the_text_of_a_file_that_has_changed_is_from_git
    File.write(file("shop.rb"), "def total\n  1 + 1\nend\n")
    started = Time.at(RecordingBuilder::HEAD["started_at_ns"] / 1_000_000_000)
    date = (started - 60).utc.strftime("%Y-%m-%d %H:%M:%S +0000")
    env = { "GIT_AUTHOR_DATE" => date, "GIT_COMMITTER_DATE" => date, "GIT_CONFIG_GLOBAL" => File::NULL }
    [%w[init -q], %w[add shop.rb], %w[-c user.name=a -c user.email=a@b commit -qm x]].each do |words|
      assert system(env, "git", *words, chdir: file("."))
    end
    File.write(file("shop.rb"), "changed\n")
    seen = in_browser("page.mjs", "source", page(RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [["Cart#total", file("shop.rb"), 1, 2]], wall: 10_000, cpu: 10_000
    end), *pictures("source"))
    assert_empty seen["complaints"]
    commit = IO.popen(%w[git rev-parse --short=10 HEAD], chdir: file("."), &:read).strip
    assert_match(/has changed since the recording.* its text in commit #{commit}, the last before/, seen["note"])
    assert_equal ["def total", "  1 + 1", "end"], seen["lines"].map(&:last)
  end

  def test_the_sizes_of_panels
    seen = in_browser("page.mjs", "sizes", page(shop), *pictures("sizes"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_in_delta seen["usual"][0] - 200, seen.dig("dragged", "widths", 0), 5
    assert_in_delta seen["usual"][1] + 200, seen.dig("dragged", "widths", 1), 5
    assert_match(/sizes=detail:\d+(\.\d)?\z/, seen.dig("dragged", "hash"))
    assert_operator seen.dig("key", "widths", 1), :<, seen.dig("dragged", "widths", 1)
    assert_in_delta 100.0 * seen.dig("key", "widths", 1) / seen.dig("key", "all"), seen.dig("key", "now"), 3
    assert_equal seen.dig("key", "widths"), seen["reloaded"]
    assert_equal [seen["usual"], nil], [seen.dig("reset", "widths"), seen.dig("reset", "hash")[/sizes/]]
    assert_in_delta seen["files"][0] + 150, seen["files"][1], 5
    assert_operator seen["lanes"][1], :<, seen["lanes"][0]
    assert_equal seen["lanes"][0], seen["lanes"][2]
    assert_equal 0, seen["narrow"]
  end

  # The same as pitwall report --blackbox, however it is asked for.
  def test_blackbox
    names = ["Shop::Cart#total", "Array#each", "lib/shop.rb"]
    html = page(shop)
    names.select! { |name| pitwall("report", "x.pit", "--blackbox", name).status.success? }
    seen = in_browser("page.mjs", "blackbox", html, *pictures("blackbox"), env: { "BLACKBOX" => JSON.generate(names) })
    assert_empty seen["complaints"] + seen["nameless"]
    report = ->(*options) { figures(JSON.parse(pitwall("report", "x.pit", "--format", "json", *options).out)) }
    assert_equal names, seen["folded"].keys
    assert_operator names.size, :>=, 2
    seen["folded"].each do |name, found|
      assert_equal report.call("--blackbox", name), shown(found["methods"]), name
      assert_equal report.call("--blackbox", name, "--gc", "caller"), shown(found["caller"]), name
      assert_includes URI.decode_www_form_component(found["hash"]), "blackbox=#{name}"
      assert_match(/blackbox #{Regexp.escape(name)}/, found["chips"].join)
    end
    refute_includes seen["away"], "blackbox"
    assert_match(/No “nothing#such” in the recording/, seen.dig("unknown", "said"))
    assert_equal ["", nil], [seen["cleared"], seen.dig("unknown", "hash")[/blackbox/]]
    assert_equal "true", seen.dig("button", "pressed")
    folded = report.call("--blackbox", names[0])
    assert_equal folded, shown(seen["reloaded"])
    assert_equal folded.keys.sort, (seen["heavy"] | folded.keys).sort
    assert_empty seen["time"] - folded.keys
    assert_equal 2, seen.dig("frame", "hash").scan("blackbox=").size
  end

  NASTY = ["</script><script>globalThis.ran = 1</script>", "<img src=x onerror='globalThis.ran = 2'>",
           "\"><svg onload=globalThis.ran=3>", "javascript:globalThis.ran=4//",
           "]]><!--", "${globalThis.ran = 5}", "\u202eevil\u0000\u001b[2J"].freeze

  def test_hostile_names_run_nothing
    head = { program: NASTY[0], mode: "<b>signal</b>", ruby: { "description" => NASTY[1] },
             host: { "cpu" => NASTY[2] }, settings: { NASTY[3] => NASTY[0] }, notes: NASTY }
    bytes = RecordingBuilder.build(**head) do |segment|
      segment.thread 1, NASTY[1]
      segment.thread 2, NASTY[0]
      NASTY.each_with_index do |name, at|
        stack = [["<main>", "/a.rb", 1, 1], [name, "/srv/#{name.delete("\0")}.rb", 1, at + 1]]
        segment.row thread: at % 2 + 1, stack: stack, wall: 1000 * (at + 1)
      end
      segment.site 5, stack: [[NASTY[0], "/srv/a.rb", 1, 2]], class_name: NASTY[1],
                      counters: [5, 0, 5, 5, 1, 1, 200, 200, 0, 7]
      segment.collection marking: 1000
      labels = NASTY.each_cons(2).to_h { |name, value| [name.delete("\0"), value.delete("\0")] }
      segment.row thread: 1, stack: [[NASTY[1], "/srv/a.rb", 1, 2]], wall: 9000, labels: labels
      segment.mark labels, thread: 1, end_ns: 30_000_000, ns: 20_000_000
      segment.work labels, count: 1, ns: 20_000_000
    end
    html = page(bytes)
    seen = in_browser("page.mjs", "hostile", html, env: { "NAME" => NASTY[1] })
    [seen["request"], seen["chips"].join].each { |text| assert_includes text, NASTY[1] }
    assert_empty seen["complaints"]
    assert_nil seen["ran"]
    assert_nil seen["injected"], "the policy lets other scripts run"
    assert_equal 0, seen["elements"]
    assert_includes seen["text"], NASTY[0]
    assert_includes seen["text"], "\\u202e"
    text = File.read(html, encoding: "UTF-8")
    assert_equal 2, text.scan("</script>").size
    assert_equal [], NASTY.select { |name| text.include?(name) && name.match?(/[<>]/) }
    refute_match(%r{<(?:script|link|img)[^>]*(?:src|href)=(?!"data:,")}, text[/\A.*<\/title>/m] + text[/<body>.{200}/m])
  end

  def test_objects_and_traces_have_their_views
    bytes = RecordingBuilder.build(mode: "none") do |segment|
      segment.thread 1, "main"
      segment.site 5, stack: [MAIN, CART], class_name: "String",
                      counters: [3000, 50, 2900, 6000, 0, 9, 120_000, 150_000, 100, 700_000]
      segment.site 6, stack: [MAIN, TAX], type: 7, class_name: "Array",
                      counters: [1000, 0, 1000, 1000, 0, 2, 40_000, 40_000, 0, 200_000]
      5.times do |at|
        segment.collection start: at * 100_000_000, marking: 100_000, sweeping: 80_000, allocated: 800, living: 5000
      end
      segment.stats["gc_ns"] = { "marking" => 500_000, "sweeping" => 400_000 }
    end
    seen = in_browser("page.mjs", "recording", page(bytes), *pictures("objects"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_includes seen["tabs"], "Objects"
    assert_match(/75\.0%\s+3,000\s+146 KiB\s+50\s+100\s+2\.0\s+9\s+700 µs\s+String\s+\S*shop\.rb:12/,
                 seen.dig("views", "Objects", "text"))
    assert_includes seen.dig("views", "Objects", "text"), "a model"

    traced = RecordingBuilder.build(mode: "none") do |segment|
      segment.thread 1, "main"
      segment.traced
      segment.calls stack: [MAIN], calls: 1, wall: 1_000_000, cpu: 900_000
      segment.calls stack: [MAIN, CART], calls: 40, wall: 5_000_000, wait: 2_000_000, cpu: 4_000_000,
                    probe: 1_000_000, objects: 80
      segment.calls stack: [MAIN, CART, TAX], calls: 400, wall: 8_000_000, cpu: 8_000_000, objects: 10
    end
    seen = in_browser("page.mjs", "recording", page(traced), *pictures("trace"))
    assert_empty seen["complaints"] + seen["nameless"]
    tree = seen.dig("views", "Call tree", "text")
    # total, self, wait, child, calls of the cart: 4 ms own, 2 ms wait, 8 ms below.
    assert_match(/14\.0 ms\s+4\.00 ms\s+2\.00 ms\s+8\.00 ms\s+40/, tree)
  end

  # What a tree's topmost rows hold together.
  def tops(rows, key = "calls") = rows.select { |row| row["depth"].zero? }.sum { |row| row[key] }

  def test_system_calls_of_a_recording
    bytes = SyscallsRecording.bytes + SyscallsRecording.bytes(pid: 4243)
    seen = in_browser("page.mjs", "syscalls", page(bytes), *pictures("syscalls"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_equal [["System calls", "About"], ["Patterns", "By path", "By Ruby stack", "By call"]],
                 seen.values_at("tabs", "parts")
    report = JSON.parse(pitwall("syscalls", "x.pit", "--format", "json").out)
    assert_includes seen["text"], "#{report["explained"]} calls in"
    found = report["passes"].select { |pass| pass["markers"].positive? }
    assert_equal found.map { |pass| pass.values_at("name", "calls", "markers").map(&:to_s) }.sort,
                 seen["patterns"].map { |row| row.values_at(6, 3, 5) }.sort
    assert_includes seen["text"], found.find { |pass| pass["name"] == report["findings"].first }["advice"]
    paths, stacks = seen.values_at("By path", "By Ruby stack").map { |tree| tree["rows"] }
    [paths, stacks].each { |rows| assert_equal report.values_at("calls", "ns"), [tops(rows), tops(rows, "ns")] }
    node = { "depth" => 1, "label" => "shop.rb", "calls" => 4, "ns" => 18, "explained" => 0, "paths" => 1 }
    assert_includes paths, node
    assert_equal [["<main>", 20], ["Shop.load", 16], ["(no Ruby code)", 2]],
                 stacks.map { |row| row.values_at("label", "calls") }
    seen.values_at("By path", "By Ruby stack").each do |tree|
      assert_equal tree["closed"], tree["shut"]
      assert_operator tree["opened"].size, :>, tree["closed"].size
      assert_match(/↑ (path|method)/, tree["sorted"].first)
    end
    assert_equal report["by_call"].map { |row| [row["call"], row["calls"].to_s] }.sort,
                 seen["calls"].map { |row| [row[-1], row[1]] }.sort
  end

  def test_system_calls_of_a_log_whose_paths_are_hostile
    paths = NASTY.map { |name| "/srv/#{name.delete("\0\t\n")}/a.rb" }
    paths += ["/srv/" + "d/" * 900 + "deep.rb", "\xFF\xFE".b]
    File.binwrite(file("x.log"), paths.map { |path| "stat64\t#{path}\nlstat64\t#{path}\n".b }.join)
    result = pitwall("syscalls", "x.log", "--format", "html", "--out", "x.html")
    assert result.status.success?, result.err
    seen = in_browser("page.mjs", "syscalls", file("x.html"), *pictures("syscalls-log"), env: { "SEARCH" => "onerror" })
    assert_empty seen["complaints"] + seen["nameless"]
    assert_equal [nil, 0, []], seen.values_at("ran", "elements", "tabs")
    rows = seen.dig("By path", "rows")
    assert_equal JSON.parse(pitwall("syscalls", "x.log", "--format", "json").out)["calls"], tops(rows)
    assert_includes rows.map { |row| row["label"] }.join, "<img src=x onerror="
    assert_includes rows.map { |row| row["label"] }.join, "\\u202Eevil"
    assert_equal 1, seen["found"].count { |row| row.last.include?("onerror") }
    assert_operator seen["found"].size, :<, rows.size
    assert_equal [["50.0%", "#{tops(rows) / 2}", "0", "lstat64"]], seen["calls"].select { |row| row.last == "lstat64" }
  end

  def test_what_changed_between_two_logs
    File.write(file("a.log"), "stat64\t/srv/<img src=x onerror=globalThis.ran=1>/a.rb\n" * 30)
    File.write(file("b.log"), "open\t/srv/<img src=x onerror=globalThis.ran=1>.rb\n" * 12)
    assert_equal 0, pitwall("syscalls", "a.log", "b.log", "--format", "html", "--out", "d.html").status.exitstatus
    seen = in_browser("page.mjs", "measured", file("d.html"), *pictures("syscalls-diff"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_includes seen["text"], "fewer file-system calls: 30 → 12 (−60.0%)"
    assert_match(/stat64\s+30\s+0\s+−30\s+−100\.0%/, seen["text"])
  end

  # The tax is new in B, Array#each takes half of the time, and `fib` is gone.
  def test_call_paths_of_two_sides
    trace = lambda do |name, calls|
      made = RecordingBuilder.build(mode: "none") do |segment|
        segment.thread 1, "main"
        calls.each { |stack, count, wall| segment.calls stack: stack, calls: count, wall: wall * 1_000_000 }
        segment.traced
      end
      File.binwrite(file(name), made)
    end
    hostile = ["<img src=x onerror=globalThis.ran=1>#tax", SHOP, 30, 31].freeze
    trace.call("a.pit", [[[MAIN], 1, 10], [[MAIN, CART], 2, 20], [[MAIN, CART, EACH], 2, 40], [[MAIN, FIB], 5, 30]])
    trace.call("b.pit", [[[MAIN], 1, 10], [[MAIN, CART], 2, 20], [[MAIN, CART, EACH], 6, 20],
                         [[MAIN, CART, hostile], 7, 150]])
    result = pitwall("compare", "a.pit", "b.pit", "--format", "html", "--out", "c.html")
    assert_equal 0, result.status.exitstatus, result.err
    seen = in_browser("page.mjs", "change", file("c.html"), *pictures("change"))
    assert_empty seen["complaints"] + seen["nameless"]
    rows = seen["rows"].map { |row| row.split(/\s*[\t\n]\s*/) }
    assert_equal [["+", hostile[0], "+150 ms", "7"], ["−", "Shop::Fib.fib", "−30.0 ms", "5"],
                  ["≠", "Array#each", "−20.0 ms", "2 → 6"]], rows
    check_boxes(seen, "+ #{hostile[0]}")
    assert_equal %w[side=a equal\ totals], [seen["swapped_hash"].delete_prefix("#"), seen["focused"]]
    assert_match(/totals=equal&node=\d+/, seen["zoomed_hash"])
    assert_includes seen["status"], "0 s → 150 ms"
    refute_equal [0, 1], seen["restored"]
    refute_match(/node=/, seen["reset_hash"])
    refute seen["wider"]
  end

  # Orange is more on the shown side, blue is less.
  def check_boxes(seen, tax)
    hue = ->(view, name) { seen[view].fetch(name)["colour"][/hsl\((\d+)/, 1] }
    assert_equal %w[28 28 215], [tax, "<main>", "Array#each"].map { |name| hue.call("boxes", name) }
    refute_includes seen["boxes"].keys.join, "fib"
    assert_equal %w[28 215 28], ["+ Shop::Fib.fib", "<main>", "Array#each"].map { |name| hue.call("swapped", name) }
    refute_includes seen["swapped"], tax
    assert_equal "0", hue.call("equal", "<main>")
    assert_in_delta 0.75, seen["boxes"][tax]["width"].fdiv(seen["boxes"]["<main>"]["width"]), 0.02
  end

  def test_what_compare_and_bench_measured
    sides = ["-e", "Array.new(300) { 1.to_s }", "-e", "Array.new(900) { 1.to_s }"]
    result = pitwall("compare", *sides, "--budget", "1.5", "--pairs", "10", "--record", "c.jsonl",
                     "--format", "html", "--out", "c.html", "--quiet")
    assert_includes [0, 1, 3], result.status.exitstatus, result.err
    seen = in_browser("page.mjs", "measured", file("c.html"), *pictures)
    assert_empty seen["complaints"] + seen["nameless"]
    text = pitwall("report", "c.jsonl").out
    claim = text[/\A.*? is [^(:]*/m].gsub(/\s+/, " ").strip
    assert_includes seen["text"].gsub(/\s+/, " "), claim
    assert_operator seen.dig("drawn", "ticks"), :>=, 4
    assert_includes seen["text"], "objects allocated"
    assert_empty seen["beside"]
    assert_equal({ "1024" => [], "400" => [], "1400" => [] }, seen["clipped"])

    File.write(file("sweep.rb"), <<~'RUBY')
      Pitwall.bench("lists") do |x|
        x.param :n, 100, 400, 1600, 6400
        x.setup { |n:| (1..n).to_a }
        x.report("sort") { |list| list.sort_by { |one| -one } }
        x.growth :n
      end
    RUBY
    result = pitwall("bench", "sweep.rb", "--budget", "0.2", "--runs", "3", "--record", "b.jsonl",
                     "--format", "html", "--out", "b.html", "--quiet")
    assert result.status.success?, result.err
    seen = in_browser("page.mjs", "measured", file("b.html"), *pictures("bench"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_operator seen.dig("drawn", "charts"), :>=, 1
    assert_match(/iterations/, seen["text"])
  end

  # What each case did beside its time stands below its own name, and nothing is cut where names are long.
  def test_a_comparison_of_several_cases
    names = ["sort_by with a block and a name that is long", "map"]
    cases = "#{names.inspect}.each { |name| x.report(name) { ENV['N'].to_i.times { Object.new } } }"
    File.write(file("x.rb"), "Pitwall.bench { |x| #{cases} }")
    sides = ["--env", "N=1", "--as", "a branch with a rather long name", "--env", "N=900"]
    result = pitwall("compare", "--warmup", "1", "--pairs", "1", *sides, "x.rb",
                     "--format", "html", "--out", "c.html", "--quiet")
    assert_equal 3, result.status.exitstatus, result.err
    seen = in_browser("page.mjs", "measured", file("c.html"), *pictures("cases"))
    assert_empty seen["complaints"] + seen["nameless"]
    assert_equal names, seen["beside"]
    assert_equal({ "1024" => [], "400" => [], "1400" => [] }, seen["clipped"])
  end
end
