# frozen_string_literal: true

require "stringio"
require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/page_contents"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require_relative "../support/traced_recording"
require "pitwall/cli"
require "pitwall/show"

# One recording, one figure: text, JSON and page show the same figures of every fixture and of planted programs. The
# page's figures come from its own modules, run in Node.js.
class FiguresTest < Minitest::Test
  include CommandLine
  include PageContents

  Units = Pitwall::Show::Units
  WEIGHTS = %w[wall cpu captures wait calls objects bytes gc].freeze

  def setup
    super
    node = system("node --version", out: File::NULL, err: File::NULL)
    skip "peer absent: Node.js (apt-get install nodejs)" unless node
  end

  def test_fixtures
    compare(File.expand_path("../fixtures/recordings/v1.pit", __dir__))
    compare(made("shop.pit", ShopRecording.bytes))
    compare(made("traced.pit", TracedRecording.bytes))
    [1, 2, 3].each { |seed| compare(made("random-#{seed}.pit", RandomRecording.new(seed).bytes)) }
  end

  ROUTE = { "route" => "orders#show", "tenant" => "acme" }.freeze
  WORK = [["Pool#run", "/app/pool.rb", 1, 4], ["Order#load", "/app/order.rb", 1, 3]].freeze
  WAIT = [["Pool#run", "/app/pool.rb", 1, 3], ["Thread::Queue#pop", "", 0, 0, 1]].freeze

  # A pool's threads waited for work nearly all the time, and one of them served a request: half of a route's time.
  def test_requests_on_threads_that_waited_for_work
    file = made("pool.pit", RecordingBuilder.build do |segment|
      segment.thread(1, "main", native_id: 4242)
      segment.thread(2, "worker 1")
      segment.thread(3, "worker 2")
      segment.row(stack: WORK, wall: 900_000, cpu: 900_000, captures: 900)
      segment.row(stack: WORK, wall: 50_000, cpu: 50_000, captures: 50, labels: ROUTE)
      segment.row(thread: 2, stack: WAIT, state: 2, wall: 5_000_000, cpu: 100, captures: 1)
      segment.row(thread: 2, stack: WORK, wall: 50_000, cpu: 5_000, captures: 5, labels: ROUTE)
      segment.row(thread: 3, stack: WAIT, state: 2, wall: 6_000_000, cpu: 100, captures: 1)
      segment.row(thread: 3, stack: WORK, wall: 25_000, cpu: 5_000, captures: 5, labels: { "route" => "orders#index" })
      segment.row(thread: 3, stack: WORK, wall: 10_000, cpu: 1_000, captures: 1, labels: { "job" => "Mail" })
      segment.mark(ROUTE, thread: 2, end_ns: 5_050_000_000, ns: 50_000_000)
      segment.work(ROUTE, count: 1, ns: 50_000_000)
      segment.work({ "route" => "orders#index" }, count: 3, ns: 60_000_000)
    end)
    json, page = compare(file)
    assert_equal ["worker 1", "worker 2"], json["idle_threads"]
    walls = page["labels"]["route"]["rows"].to_h { |value, wall,| [value, wall] }
    assert_equal({ "orders#show" => 100_000_000, "orders#index" => 25_000_000, nil => 910_000_000 }, walls)
    text = report(file, "--view", "labels")
    assert_match(/80\.0% +100 ms .* 1 +50\.0 ms +orders#show$/, text)
    assert_match(/^ +910 ms .*\(without\)$/, text)
    # Requests are not counted by thread: none is not what is said of them.
    refute_match(/requests|mean/, report(file, "--view", "labels", "--thread", "worker 2"))
    labels = JSON.parse(report(file, "--view", "labels", "--thread", "worker 2", "--format", "json"))["labels"]
    assert_equal [nil], labels["values"].map { |row| row["requests"] }.uniq
    refute_match(/of \d+ requests/, report(file, "--view", "requests", "--thread", "worker 1"))
    assert_match(/of 1 request that/, report(file, "--view", "requests", "--label", "tenant=acme"))
  end

  # What the VM and Pitwall allocated stands beside the program's objects, and is no part of their count.
  def test_objects_of_the_vm
    file = made("objects.pit", RecordingBuilder.build(mode: "none") do |segment|
      segment.thread(1, "main")
      segment.site(1, type: 0, class_name: "", counters: [5000, 0, 5000, 0, 0, 0, 200_000, 200_000, 0, 70, 0])
      segment.site(2, type: 0, class_name: "", counters: [700, 0, 700, 0, 0, 0, 28_000, 28_000, 0, 30, 0])
      segment.site(3, type: 0, class_name: "", counters: [11, 0, 11, 0, 0, 0, 440, 440, 0, 4, 0])
      segment.site(5, stack: [["Order#load", "/app/order.rb", 1, 3]],
                      counters: [100, 0, 90, 0, 0, 0, 4000, 9000, 10, 900, 800])
      segment.site(6, stack: [["Order#load", "/app/order.rb", 1, 3], ["Array#map", "", 0, 0, 1]],
                      type: 7, class_name: "Array", counters: [40, 0, 0, 0, 0, 0, 1600, 1600, 40, 10, 1600])
    end)
    _, page = compare(file)
    assert_equal [151, 11_040], page["objects"]["total"].values_at("objects", "bytes")
    assert_match(/^151 objects/, report(file, "--view", "allocations"))
  end

  PROGRAM = <<~'RUBY'
    class Shop
      def price(n) = (1..n).sum { |i| i.to_s.size }
      def wait = sleep(0.02)
    end
    jobs = Queue.new
    pool = Array.new(3) { |n| Thread.new { Thread.current.name = "pool #{n}"; while (job = jobs.pop) do job.call end } }
    done = Queue.new
    12.times do |n|
      jobs << lambda do
        Pitwall.request(route: n.even? ? "show" : "index") { Shop.new.price(20_000); Shop.new.wait }
        done << n
      end
    end
    12.times { done.pop }
    Shop.new.price(400_000)
    jobs.close
    pool.each(&:join)
  RUBY

  def test_planted_programs
    File.write(file("program.rb"), "require 'pitwall'\n#{PROGRAM}")
    {
      "profile" => %w[profile --allocations 1/5], "allocations" => %w[allocations --stacks], "trace" => %w[trace]
    }.each do |name, verb|
      ran = pitwall(*verb, "--quiet", "--record", "#{name}.pit", "--", RUBY, "-I#{Checkout::ROOT}/lib", "program.rb")
      assert_equal 0, ran.status.exitstatus, ran.err
      compare(file("#{name}.pit"))
    end
  end

  private

  def made(name, bytes) = file(name).tap { |path| File.binwrite(path, bytes) }

  def report(path, *options)
    out, err = StringIO.new, StringIO.new
    status = Pitwall::CLI.run(["report", path, *options], out: out, err: err)
    assert_equal 0, status, "#{options.join(" ")}: #{err.string}"
    out.string
  end

  # @return [Array(Hash, Hash)] the report as JSON, by the first weight that there is; the page's figures
  def compare(path)
    page = page_figures(path)
    name = File.basename(path)
    json = page["weights"].map do |weight, figures|
      same_methods(name, path, weight, figures, page["idle"].fetch(weight))
    end
    same_labels(name, path, page)
    same_requests(name, path, page)
    same_objects(name, path, page)
    [json.first, page]
  end

  def page_figures(path)
    File.write(file("page.data"), report(path, "--format", "html")[%r{id="data">([A-Za-z0-9+/=]+)</script>}, 1])
    out, status = Open3.capture2e("node", File.join(__dir__, "figures.mjs"), file("page.data"))
    assert status.success?, out[0, 2000]
    JSON.parse(out)
  end

  # By method, JSON against the page and text against JSON; with idle threads too.
  def same_methods(name, path, weight, figures, with_idle)
    { [] => figures, ["--idle"] => with_idle }.each do |options, shown|
      views = ["--view", "flat", "--view", "threads"]
      json = JSON.parse(report(path, "--weight", weight, *views, "--format", "json", *options))
      about = "#{name} #{weight} #{options.join}"
      assert_equal shown["total"], json["total"], about
      rows = json["methods"].reject { |row| row["total"].zero? }
      methods = rows.map { |row| [escaped(row["name"]), *row.values_at("file", "line", "self", "total")] }
      assert_equal order(shown["methods"]), order(methods), about
      text = report(path, "--weight", weight, "--view", "flat", "--limit", "100000", *options)
      # Where waiting stands apart, the text's table is of the time in which threads ran.
      table = json["work"] && options.empty? ? json["work"] : json
      refute_empty table["methods"], about unless json["methods"].empty?
      table["methods"].reject { |row| row["total"].zero? }.each do |row|
        assert_text(text, method_cells(row, table["total"], weight), row["name"], about)
      end
    end
    JSON.parse(report(path, "--weight", weight, "--view", "flat", "--format", "json"))
  end

  def method_cells(row, whole, weight)
    %w[self total].flat_map { |part| [Units.percent(row[part], whole), Units.value(row[part], weight.to_sym)] }
  end

  def same_labels(name, path, page)
    return if page["weights"].empty?

    json = JSON.parse(report(path, "--view", "labels", "--format", "json"))["labels"]
    assert_equal json["names"].sort, page["names"].sort, name
    json["names"].each do |key|
      labels = JSON.parse(report(path, "--label-key", key, "--format", "json"))["labels"]
      about = "#{name} label #{key}"
      rows = labels["values"].reject { |row| row["wall"].zero? && row["requests"].zero? }
      fields = %w[value wall cpu captures requests request_ns]
      assert_equal order(page["labels"][key]["rows"]), order(rows.map { |row| row.values_at(*fields) }), about
      assert_equal page["labels"][key]["labelled"], labels["labelled"], about
      text = report(path, "--label-key", key, "--limit", "100000")
      rows.each { |row| assert_text(text, label_cells(row, labels["labelled"]), row["value"] || "(without)", about) }
      # What a label's row has is what the report of that label alone is of.
      rows.each do |row|
        next if row["value"].nil? || row["wall"].zero?

        label = "#{key}=#{row["value"]}"
        totals = [JSON.parse(report(path, "--label", label, "--format", "json"))["total"], page["labelled"][label]]
        assert_equal [row["wall"]] * 2, totals, about
      end
    end
  end

  def label_cells(row, whole)
    count, ns = row.values_at("requests", "request_ns")
    requests = count.positive? ? [Units.count(count), Units.duration(ns / count)] : []
    share = Units.percent(row["wall"], whole) if row["value"]
    [*share, Units.duration(row["wall"]), Units.duration(row["cpu"]), *requests]
  end

  def same_requests(name, path, page)
    return if page["weights"].empty?

    json = JSON.parse(report(path, "--view", "requests", "--format", "json"))["requests"]
    assert_equal json.map { |row| row.values_at("number", "labels", "duration_ns", "start_ns") },
                 page["requests"].map { |row| row.values_at("number", "labels", "ns", "start") }, name
    return if json.empty?

    text = report(path, "--view", "requests", "--limit", "100000")
    assert_includes text, "of #{Units.things(page["count"], "request")} that ended", name
    weight = JSON.parse(report(path, "--format", "json", "--view", "flat"))["weight"]
    return unless weight == "wall" && page["threads"].any? { |thread| thread[4].positive? }

    page["requests"].first(5).each do |row|
      one = JSON.parse(report(path, "--request", row["number"].to_s, "--format", "json"))
      assert_equal row["wall"], one["total"], "#{name} request #{row["number"]}"
    end
  end

  def same_objects(name, path, page)
    return if page["objects"].nil?

    json = JSON.parse(report(path, "--view", "allocations", "--format", "json"))
    total = page["objects"]["total"]
    assert_equal json.values_at("objects", "bytes"), total.values_at("objects", "bytes"), name
    drawn = %w[objects bytes].map { |weight| page["weights"].fetch(weight)["total"] }
    assert_equal total.values_at("objects", "bytes"), drawn, "#{name}: the flame graph's “all”"
    fields = %w[path line class count bytes retained retained_bytes gc_ns]
    assert_equal order(page["objects"]["sites"]), order(json["sites"].map { |row| row.values_at(*fields) }), name
    text = report(path, "--view", "allocations", "--limit", "100000")
    json["sites"].each do |row|
      next if row["special"] || json["looked_at"]

      assert_text(text, object_cells(row, json), row["class"], name)
    end
  end

  def object_cells(row, json) = [Units.count(row["count"]), Units.percent(row["count"], json["objects"])]

  def order(rows) = rows.sort_by(&:inspect)

  def escaped(name) = name.gsub(/[\u0000-\u001f\u007f-\u009f]/) { |character| format('\u%04x', character.ord) }

  # A row of these cells, beside the name's beginning.
  def assert_text(text, cells, name, about)
    row = /^ *#{cells.map { |cell| Regexp.escape(cell) }.join(" +")} /
    assert_match(row, text, "#{about}: #{name}")
  end
end
