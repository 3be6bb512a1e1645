# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/cli"
require "pitwall/history"
require "sequel"
require "stringio"
require_relative "../support/history_files"

# `pitwall history` on SQLite. test/history/postgres_test.rb does the same on PostgreSQL.
class HistoryTest < Minitest::Test
  include HistoryFiles

  STORE = { "PITWALL_STORE" => "h.sqlite3" }.freeze

  def shown(*words) = JSON.parse(history(*words, "--format", "json", env: STORE).out)

  def test_add_and_show
    bench_file("a.jsonl", 1000.0)
    compare_file("b.jsonl", 2000.0, 1900.0)
    result = history("add", "a.jsonl", "b.jsonl", "--commit", "c" * 40, "--at", "2026-11-24T19:05:00Z", env: STORE)
    assert_equal [0, "3 runs, 6 results in project shop, h.sqlite3\n", ""], [result.status, result.out, result.err]
    again = history("add", "b.jsonl", "a.jsonl", env: STORE)
    assert_equal "0 runs, 6 results in project shop, h.sqlite3 (3 runs there already)\n", again.out

    found = shown("show", "checkout")["series"]
    assert_equal [1, "wall", "ns"], [found.size, *found[0]["series"].values_at("metric", "unit")]
    assert_equal [["2026-11-24T19:05:00Z", 1000.0, "c" * 40, "ruby 3.4.1 (2026)"]],
                 found[0]["results"].map { |row| row.values_at("measured_at", "value", "commit_id", "ruby") }
    both = shown("show", "join")["series"][0]["results"]
    assert_equal [["a" * 40, 2000.0], ["b" * 40, 1900.0]], both.map { |row| row.values_at("commit_id", "value") }.sort
    assert_equal %w[objects wall], shown("show", "join", "--metric", "all")["series"].map { |one| one["series"]["metric"] }
  end

  def test_without_options_the_place_is_the_folder_of_recordings
    bench_file("a.jsonl", 1000.0)
    assert_equal 0, history("add", "a.jsonl").status
    assert_path_exists file(".pitwall/history.sqlite3")
    assert_equal "*\n", File.read(file(".pitwall/.gitignore"))
    assert_equal %w[checkout], JSON.parse(history("show", "--format", "json").out)["series"].map { |one| one["series"]["benchmark"] }
  end

  def fill
    random = Random.new(1)
    values = Array.new(60) { |number| (number < 40 ? 1000 : 1100) * (0.99 + (random.rand * 0.02)) }
    rubies = ->(number) { number < 40 ? "ruby 3.4.1 (2025)" : "ruby 4.0.0 (2026)" }
    store do |open|
      open.add("shop", runs(values, ruby: rubies))
      open.add("shop", runs([500.0] * 30, benchmark: "quiet"))
      open.add("other", runs([1.0]))
    end
  end

  def test_changes
    fill
    text = history("changes", env: STORE).out
    assert_match(/2026-02-10 00:00 .*\+\d+\.\d% +≤ 0\.001 .*checkout, wall time\n  commit 0{10}, ruby 3\.4\.1 → ruby 4\.0\.0$/, text)
    assert_equal 5, text.lines.size, text
    change = shown("changes")["series"][0]["changes"][0]
    assert_equal ["2026-02-10T00:00:00Z", true], change.values_at("measured_at", "worse")
    assert_in_delta 1.1, change["ratio"], 0.02
    assert_match(/^\| 2026-02-10 00:00 \| checkout, wall time \|/, history("changes", "--format", "markdown", env: STORE).out)

    # A result more makes its series be analysed again: the change is kept once.
    store { |open| open.add("shop", runs([1100.0], source: "more")) }
    assert_equal 1, shown("changes")["series"][0]["changes"].size
    store { |open| assert_empty open.unanalysed("shop", Pitwall::Analyse::ResultSeries.method_name) }
  end

  def test_table_and_plot
    fill
    table = history("show", env: STORE).out
    assert_match(/\AProject shop, host \h{12}: 2 series\n\nresults +newest +last change +p +since +trend +case and metric\n/, table)
    assert_match(/^ +60 .*\+\d+\.\d% +≤ 0\.001 +2026-02-10 .*checkout, wall time$/, table)
    assert_match(/^\| quiet, wall time \| \h{12} \| 30 \| 500\.0 ns \|  \|/, history("show", "--format", "markdown", env: STORE).out)
    plot = history("show", "checkout", "--plot", env: STORE).out.lines(chomp: true)
    assert_equal 12, plot.grep(/│/).size
    assert_operator plot.grep(/┊/).size, :>=, 8
    assert(plot.any? { |line| line.start_with?("  since 2026-02-10 00:00: ") && line.include?(", commit ") })
    assert_empty plot.select { |line| line.size > 100 }
    assert_equal 1, history("show", "--plot", "quiet", "--limit", "1", env: STORE).out.scan("●").size / 30
  end

  # Of several hosts, on terminals of any width: no line is cut by the terminal, and names keep both of their ends.
  def test_narrow_and_wide_terminals
    store do |open|
      random = Random.new(1)
      hosts = [HistoryFiles::HOST, HistoryFiles::HOST.merge("cpu" => "Xeon")]
      hosts.product(["a long name of a benchmark as a spec has it, with its end", "short"]).each do |host, name|
        values = Array.new(60) { |number| (number < 40 ? 1000 : 1100) * (0.99 + (random.rand * 0.02)) }
        open.add("shop", runs(values, benchmark: name, host: host))
      end
    end
    found = store do |open|
      Pitwall::History::Analysis.update(open, "shop")
      Pitwall::History::Analysis.load(open, "shop", open.series("shop"), last: 200)
    end
    { 60 => %w[newest last\ change host], 80 => %w[newest last\ change since host],
      100 => ["newest", "last change", "p", "since", "trend", "host"],
      160 => ["results", "newest", "last change", "p", "since", "trend", "host"] }.each do |width, heads|
      text = Pitwall::Show::HistoryText.new(found, project: "shop", all: 4, width: width, palette: Pitwall::Show::Plain)
      table, changes, plots = text.table.lines(chomp: true), text.changes.lines(chomp: true), text.plots.lines(chomp: true)
      assert_equal [*heads, "case and metric"], table[2].strip.split(/ {2,}/)
      assert_empty [*table, *changes, *plots].select { |line| Pitwall::Show::Text.width(line) > width }
      assert_equal 2, table.grep(/  short, wall time\z/).size
      assert_equal 2, table.grep(/  a long.*, wall time\z/).size
      assert_match(/\A *since .* change .* case and metric\z/, changes[2])
      assert_equal 4, changes.grep(/\A  host \h{12}, commit 0{10}\z/).size
      assert_equal 2, plots.grep(/\Aa long name.*wall time\z/).size
      assert_equal 4, plots.grep(/\Ahost \h{12}: 60 results, newest 1\.\d+ µs\z/).size
    end
  end

  def test_hosts_are_not_mixed_unless_told
    other = HistoryFiles::HOST.merge("cpu" => "Xeon", "kernel" => "6.9")
    store do |open|
      open.add("shop", runs([100.0] * 20))
      open.add("shop", runs([100.0] * 5, host: HistoryFiles::HOST.merge("kernel" => "6.2")))
      open.add("shop", runs([200.0] * 20, host: other, source: "x"))
    end
    found = shown("show")["series"]
    assert_equal [20, 25], found.map { |one| one["series"]["count"] }.sort, "another kernel is the same host"
    assert(found.all? { |one| one["results"].map { |row| row["value"] }.uniq.size == 1 })
    assert_equal [45], shown("show", "--mix-hosts")["series"].map { |one| one["series"]["count"] }
    host = found[0]["series"]["host_id"]
    assert_equal [host], shown("show", "--host", host)["series"].map { |one| one["series"]["host_id"] }
  end

  def test_imports
    root = File.join(Checkout::ROOT, "test/fixtures")
    ips, driver = %w[benchmark_ips.json benchmark_driver.record.yml].map { |name| File.join(root, "real/history", name) }
    assert_equal 0, history("add", ips, driver, "#{root}/history_ruby_bench.json", "--suite", "peers", env: STORE).status
    rows = history("export", "--format", "json", env: STORE).out.lines.map { |line| JSON.parse(line) }
    found = rows.to_h { |row| [row.values_at("benchmark", "variant", "metric"), row["value"]] }
    rates = JSON.parse(File.read(ips)).to_h { |row| [row["name"], row["ips"]] }
    assert_in_delta 1e9 / rates["sum"], found[["sum", "", "wall"]], 1e-6
    assert_in_delta 1e9 / 2_569_178.344974077, found[["sum", "3.1.2", "wall"]], 1e-6
    assert_in_delta 1e9 / 3_042_385.013191166, found[["max", "3.1.2", "wall"]], 1e-6
    assert_in_delta 0.21e9, found[%w[fib ruby wall]], 1e-3
    assert_in_delta 0.041e9, found[%w[fib yjit wall]], 1e-3
    assert_in_delta 16_000_000, found[%w[fib yjit max_rss]], 0
    assert_equal [["peers", "unknown"]], rows.map { |row| row.values_at("suite", "host") }.uniq
    assert_equal "ruby 3.4.1 (2024-12-25 revision 48d4efcb85) +YJIT +PRISM [x86_64-linux]",
                 rows.find { |row| row["variant"] == "yjit" }["ruby"]
  end

  def test_reports_in_json
    row = { "name" => "join", "metric" => "wall", "unit" => "ns", "a" => 10.0, "b" => 12.0, "side" => "topic", "base" => "main" }
    sides = [{ "name" => "main", "facts" => { "revision" => "a" * 40 } }, { "name" => "topic", "facts" => {} }]
    File.write(file("c.json"), JSON.generate("schema" => "pitwall/compare-1", "results" => [row], "sides" => sides, "host" => HOST))
    one = row.merge("b" => nil, "estimate" => { "low" => 9.0, "high" => 11.0 })
    File.write(file("b.json"), JSON.generate("schema" => "pitwall/bench-1", "results" => [one], "facts" => { "ruby" => "ruby 4" }))
    assert_equal 0, history("add", "c.json", "b.json", env: STORE).status
    rows = history("export", env: STORE).out.lines.drop(1).map { |line| line.chomp.split(",", -1) }
    assert_equal [["10.0", "", "", "a" * 40, ""], ["10.0", "9.0", "11.0", "", "ruby 4"], ["12.0", "", "", "", ""]],
                 rows.map { |cells| cells.values_at(8, 9, 10, 11, 13) }.sort
  end

  def test_csv_quotes
    store { |open| open.add("shop", runs([1.0], benchmark: "a, \"b\"\nc")) }
    assert_includes history("export", env: STORE).out, %(2026-01-01T00:00:00Z,,"a, ""b""\nc",,wall,ns,lower,)
    history("export", "--out", "x.csv", env: STORE)
    assert_equal history("export", env: STORE).out, File.read(file("x.csv"))
  end

  def test_bad_input
    bench_file("a.jsonl", 1.0)
    history("add", "a.jsonl", env: STORE)
    before = File.binread(file("h.sqlite3"))
    File.write(file("x.json"), "{}")
    File.write(file("y.json"), "no")
    File.write(file("d.yml"), "job_warmup_context_result: 1")
    File.write(file("bomb.yml"), "job_warmup_context_result:\n  ? !ruby/object:Kernel {}\n  : *nowhere\n")
    File.write(file("i.json"), JSON.generate([{ "name" => "a", "ips" => 0 }]))
    { [] => /what to do\? pitwall history add, show/, %w[ad] => /no action ad \(did you mean add\?\)/,
      %w[add] => /name files of results/, %w[add none.jsonl] => /none.jsonl: no such file/, %w[add .] => /a folder/,
      %w[show --at 2026-01-01T00:00:00Z] => /--at: not with history show/, %w[add a.jsonl --at now] => /--at now: takes a time/,
      %w[show --format csv] => /has text, json, markdown/, %w[show nothing] => /no such case/, %w[show --last 0] => /1 or more/,
      %w[show --host a --mix-hosts] => /one or the other/, %w[show --metric cpu] => /there are objects, wall/,
      %w[send x] => /send takes no words/, %w[show --project none] => /it has shop/, %w[show --host zz] => /no results of it/,
      %w[show --store none.sqlite3] => /no history there/, %w[show --store mysql://u:secret@h/d] => /not in mysql:/,
      %w[export --out h.sqlite3] => /name another file/ }.each do |words, expected|
      assert_refused(2, expected, *words, env: STORE)
    end
    File.binwrite(file("b.bin"), "\xFF\xFE\0job_warmup".b * 9)
    File.write(file("inf.json"), '[{"name": "a", "ips": 1e-320}]')
    File.write(file("nul.json"), '[{"name": "a\\u0000b", "ips": 1}]')
    %w[x.json y.json d.yml bomb.yml i.json b.bin inf.json nul.json].each { |name| assert_refused(5, /#{name}: /, "add", "a.jsonl", name, env: STORE) }
    refute_includes history("show", "--store", "postgres://u:se cret@h/d", env: STORE).err, "cret"
    assert_equal before, File.binread(file("h.sqlite3"))
    assert_empty Dir[file(".pitwall/spool/*")]
  end

  # What is meant as a URL makes no file, and is nowhere in a message.
  def test_places_that_are_refused
    bench_file("a.jsonl", 1.0)
    ['"postgres://u:2024pw@h/d"', "'h.sqlite3'", "postgres:u:2024pw@h", "jdbc:postgresql://u:2024pw@h/d", "sqlite://", " ",
     ":memory:", "sqlite://:memory:", "host=h password=2024pw", "postgres://u:2024#pw@h/db", "postgres://u:2024/pw@h/db",
     "postgres://u:2024?pw@h/db", " postgres://u:20 24pw@h/d", "postgres://u:%FF2024@h/d", "sqlite://postgres://u:2024@h"].each do |place|
      error = assert_raises(Pitwall::UsageError, place) { Pitwall::History::Address.parse(place) }
      refute_match(/2024|pw/, error.full_message(highlight: false).lines.first, place)
      assert_nil error.cause
    end
    refute_match(/2024/, assert_refused(2, /the history's place/, "add", "a.jsonl", "--store", '"postgres://u:2024@h/d"').err)
    assert_equal %w[a.jsonl], Dir.children(@dir) - %w[.tmp]
    spaced = Pitwall::History::Address.parse(" postgres://u:pw@h/d\n")
    assert_equal [false, "postgres://u@h/d"], [spaced.sqlite?, spaced.to_s]
    assert_equal 0, history("add", "a.jsonl", "--store", "h.sqlite3\n").status
  end

  # Sound files that are no results over time: left out beside others, refused alone.
  def test_files_that_are_left_out
    bench_file("a.jsonl", 1.0)
    unfit = { "each" => /commits of a range/, "bisect" => /commits of a range/, "again" => /confirms/, "now" => /not ended/ }
    unfit.each_key { |name| compare_file("#{name}.jsonl", 1.0, 2.0) }
    lines = File.readlines(file("each.jsonl"))
    File.write(file("each.jsonl"), [*lines[0..-2], '{"end":true,"commits":{}}', "\n"].join)
    File.write(file("bisect.jsonl"), [*lines[0..-2], '{"end":true,"search":{}}', "\n"].join)
    File.write(file("again.jsonl"), [lines[0].sub('"settings"', '"confirms":"x","settings"'), *lines[1..]].join)
    File.write(file("now.jsonl"), lines[0..-2].join)
    File.write(file("each.json"), JSON.generate("schema" => "pitwall/compare-1", "results" => [], "commits" => {}))
    unfit.merge("each.json" => /commits of a range/).each do |name, reason|
      assert_refused(5, reason, "add", name.end_with?(".json") ? name : "#{name}.jsonl", env: STORE)
    end
    result = history("add", "each.jsonl", "a.jsonl", "now.jsonl", env: STORE)
    assert_equal [0, "1 run, 2 results in project shop, h.sqlite3\n", 2], [result.status, result.out, result.err.lines.size]
    assert_match(/\Apitwall: left out: each\.jsonl: .*\npitwall: left out: now\.jsonl: /, result.err)
    assert_match(/\A0 runs, /, history("add", "a.jsonl", "--suite", "other", env: STORE).out)
    assert_equal 2, history("export", env: STORE).out.lines.drop(1).size, "a known run gets no results more"
  end

  def test_a_newer_schema_and_another_file_are_refused
    store { |open| open.add("shop", runs([1.0])) }
    bench_file("a.jsonl", 1.0)
    Sequel.sqlite(file("h.sqlite3")) { |database| database[:pitwall_schema].insert(number: 99) }
    before = File.binread(file("h.sqlite3"))
    [%w[show], %w[add a.jsonl]].each do |words|
      assert_refused(5, /schema 99, made by a newer Pitwall; this one knows \d+: install the newer one/, *words, env: STORE)
    end
    assert_equal before, File.binread(file("h.sqlite3"))
    File.write(file("text"), "no database " * 200)
    assert_refused(5, /text: no history/, "show", "--store", "text")
    assert_equal "no database " * 200, File.read(file("text"))
  end

  # Each older schema with results in it becomes the newest.
  def test_migrations
    newest = Pitwall::History::Schema.newest
    (0..newest).each do |number|
      path = file("#{number}.sqlite3")
      Sequel.sqlite(path) do |database|
        Pitwall::History::Schema.migrate(database, to: number)
        database[:projects].insert(project_id: "old", added_at: "2026-01-01T00:00:00Z") if number.positive?
        assert_equal number, Pitwall::History::Schema.number(database)
      end
      store(path) do |open|
        assert_equal number.positive? ? %w[old] : [], open.projects
        assert_equal 1, open.add("shop", runs([1.0]))
      end
      Sequel.sqlite(path) { |database| assert_equal newest, Pitwall::History::Schema.number(database) }
    end
  end
end
