# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/shop_recording"
require_relative "../support/traced_recording"
require "pitwall/cli"
require "pitwall/cli/support/output_file"
require "json"
require "stringio"
require "tmpdir"

class ReportTest < Minitest::Test
  def setup
    @dir = Dir.mktmpdir("pitwall-report-")
    @file = File.join(@dir, "shop.pit")
    File.binwrite(@file, ShopRecording.bytes)
  end

  def teardown = FileUtils.rm_rf(@dir)

  def test_the_default_report
    status, out, err = run_command("report", @file)
    assert_equal [0, ""], [status, err]
    assert_match(/shop\.rb · ruby 3\.4\.1.*1,990 samples.*self +wall +total +total wall +self cpu +method/m, out)
    assert_match(/self cpu +method.*puma srv.*Next: pitwall report/m, out)
  end

  def test_idle_threads_are_named_and_counted_when_asked_for
    _, out, = run_command("report", @file)
    assert_match(/idle threads left out .*puma srv/, out)
    refute_match(/Kernel#sleep/, out)
    _, out, = run_command("report", @file, "--idle")
    assert_match(/Kernel#sleep/, out)
    refute_match(/left out/, out)
  end

  def test_json_is_what_the_documentation_says
    report = json("--idle", "--tree", "--bottom-up", "--view", "lines", "--callers", "fib", "--callees", "fib")
    assert_equal ["pitwall/report-1", "wall", "ns"], report.values_at("schema", "weight", "unit")
    assert_equal report["total"], report["methods"].sum { |method| method["self"] }
    assert_equal report["total"], report["threads"].sum { |thread| thread["wall"] }
    assert_in_delta 100, report["methods"].sum { |method| method["self_percent"] }, 0.01
    fib = report["methods"].find { |method| method["name"] == "Shop::Fib.fib" }
    assert_equal ["/srv/app/lib/fib.rb", 2, 230_000_000, 230_000_000, 169_000_000],
                 fib.values_at("file", "line", "self", "total", "self_cpu")
    assert_equal fib["total"], report["callers"]["methods"].sum { |method| method["total"] }
    assert_equal report["total"], report["tree"].sum { |row| row["self"] }
    assert_equal report["total"], report["bottom_up"].select { |row| row["parent"].nil? }.sum { |row| row["total"] }
    assert_equal report["total"], report["lines"].sum { |row| row["self"] }
    sections = %w[callees host losses notes settings warnings]
    assert_equal sections, sections & report.keys
    assert_equal [1, 3, 0], report["losses"].values_at("dropped", "missed_ticks", "deferred_ticks")
    assert_equal 10_000_000, report["own_ns"]
  end

  def test_json_leaves_idle_threads_out_and_names_them
    report = json
    assert_equal ["puma srv tp 001"], report["idle_threads"]
    busy = report["threads"].reject { |thread| report["idle_threads"].include?(thread["name"]) }
    assert_equal report["total"], busy.sum { |thread| thread["wall"] }
    assert_empty json("--idle")["idle_threads"]
  end

  def test_weights_and_filters
    assert_equal 991_000_000, json("--weight", "cpu")["total"]
    assert_equal [1063, "captures"], json("--weight", "captures", "--idle").values_at("total", "unit")
    assert_equal 60_000_000, json("--state", "gvl")["total"]
    assert_equal 1_473_000_000, json("--thread", "puma srv tp 001")["total"]
    assert_equal 1_473_000_000, json("--thread", "2")["total"]
    assert_equal json["total"], json("--process", "4242")["total"]
    boxed = json("--blackbox", "Shop::Checkout::Cart#total_with_discounts_and_taxes")
    own = ->(found, start) { found["methods"].find { |method| method["name"].start_with?(start) }["self"] }
    assert_equal 800_000_000, own.call(boxed, "Shop::Checkout::Cart")
    assert_equal 900_000_000 - 400_000_000, own.call(json("--gc", "caller"), "block in Shop")
  end

  def test_garbage_collection
    File.binwrite(@file, RecordingBuilder.build do |segment|
      segment.row(stack: [["Object#main", "/srv/app/a.rb", 1, 3]], wall: 1_000_000)
      segment.collection(start: 100, marking: 250_000_000, majors: 1, major_cause: 4, cause: 3)
    end)
    _, out, = run_command("report", @file)
    assert_match(/garbage collection took 12\.5% of the wall time, in 1 run$.*pitwall report \S+ --view gc$/m, out)
    _, out, = run_command("report", @file, "--view", "gc")
    assert_match(/1 run \(1 major\) took 250 ms, 12\.5% of the wall time.*GC\.start; major: asked for.*Object#main/m,
                 out)
    gc = json("--view", "gc")["gc"]
    assert_equal [1, 1, 250_000_000, 0.125], gc.values_at("count", "majors", "total_ns", "share")
    assert_equal [{ "cause" => "method", "major_cause" => "force" }],
                 gc["runs"].map { |run| run.slice("cause", "major_cause") }
    refute json.key?("gc")
    without_gc = File.join(@dir, "shop.pit")
    File.binwrite(without_gc, ShopRecording.bytes)
    _, out, = run_command("report", without_gc, "--view", "gc")
    assert_match(/the garbage collector did not run/, out)
  end

  def test_several_files_are_one_report
    other = File.join(@dir, "other.pit")
    File.binwrite(other, ShopRecording.bytes(pid: 77, compress: true))
    assert_equal json["total"] * 2, json(other)["total"]
    parts = json(other, "--apart")["processes"]
    assert_equal [json["total"]] * 2, parts.map { |part| part["total"] }
    assert_equal 2, run_command("report", @file, other, "--apart")[1].scan(/^shop\.rb · ruby/).size
  end

  def test_elapsed_is_of_the_runs_and_not_between_them
    hour = 3600 * 1_000_000_000
    other = File.join(@dir, "other.pit")
    started = RecordingBuilder::HEAD["started_at_ns"]
    File.binwrite(other, ShopRecording.bytes(pid: 77, started_at_ns: started + hour))
    assert_equal 4_000_000_000, json(other)["elapsed_ns"]
    File.binwrite(other, ShopRecording.bytes(pid: 77, started_at_ns: started + 1_500_000_000))
    assert_equal 3_500_000_000, json(other)["elapsed_ns"], "what runs at the same time counts once"
    File.binwrite(@file, ShopRecording.bytes + ShopRecording.bytes(pid: 77, started_at_ns: started + hour))
    assert_equal hour + 2_000_000_000, json["elapsed_ns"], "processes of one run: from the first to the last"
  end

  # A sampled, a traced and an allocations recording of the same name of program.
  def kinds
    shop = [["Shop#sum", "/app/shop.rb", 3, 4]]
    objects = RecordingBuilder.build(mode: "none", collectors: ["allocations"]) do |segment|
      segment.site(5, stack: shop, counters: [7] + [0] * 9)
    end
    no_bytes = { "clock" => "tsc", "cpu" => true, "objects" => true, "bytes" => false, "lost_calls" => 0,
                 "probe_ns" => {} }
    lean = RecordingBuilder.build(mode: "none") do |segment|
      segment.calls stack: [["Shop#sum", "/app/shop.rb", 3, 4]], wall: 5
      segment.traced(no_bytes)
    end
    { traced: TracedRecording.bytes, objects: objects, lean: lean }.to_h do |name, bytes|
      [name, File.join(@dir, "#{name}.pit").tap { |file| File.binwrite(file, bytes) }]
    end
  end

  def test_what_was_recorded_says_which_view
    traced, objects = kinds.values_at(:traced, :objects)
    assert_match(/^ *self% +total +self +wait +child +calls +method$/, run_command("report", traced)[1])
    assert_match(/^ *self +objects +total +total objects/, run_command("report", traced, "--weight", "objects")[1])
    assert_match(/^objects +old .*class/, run_command("report", objects)[1])
    calls = JSON.parse(run_command("report", traced, "--format", "json")[1])["calls"]
    assert_equal 18, calls.sum { |row| row["calls"] }
    assert_equal "pitwall/allocations-1", JSON.parse(run_command("report", objects, "--format", "json")[1])["schema"]
    assert_match(/^total +self +objects +method$/, run_command("report", objects, "--tree")[1].gsub(/^ +/, ""))
    markdown = run_command("report", traced, "--format", "markdown")[1]
    assert_match(/ · 18 calls$/, markdown)
    assert_match(/^\| self \|.*\| calls \| method \| where \|$/, markdown)
    assert_match(/^\|.* \| 8 \| `Shop#sum` \|/, markdown)
    waits = run_command("report", traced, "--weight", "wait")[1]
    assert_match(/ Thread#join/, waits)
    refute_match(/ Shop#sum/, waits, "what waits for nothing is no row")
  end

  def test_what_would_change_nothing_is_refused
    traced, objects, lean = kinds.values_at(:traced, :objects, :lean)
    {
      [@file, "--sort", "age"] => "--sort is for the view of allocations",
      [traced, "--by", "class"] => "--by is for", [objects, "--tree", "--retained"] => "--retained is for",
      [objects, "--thread", "main"] => "--thread: the view of allocations has all",
      [objects, "--apart"] => "--apart: the view of allocations",
      [traced, "--lines", "shop.rb"] => "--lines: calls have no lines",
      [traced, "--view", "lines"] => "--view lines: calls have no lines",
      [lean, "--weight", "bytes"] => "pitwall trace --bytes",
      [@file, "--view", "gc-cost"] => "--view gc-cost: no objects were followed",
      [@file, traced] => "traced.pit is traced and"
    }.each do |arguments, message|
      status, out, err = run_command("report", *arguments)
      assert_equal [2, "", 1], [status, out, err.lines.size], "#{arguments} #{err}"
      assert_includes err, message
    end
    assert_equal 0, run_command("report", @file, objects, "--view", "gc-cost")[0]
    [[@file, traced], [traced, @file]].each do |files|
      status, _, err = run_command("compare", *files)
      assert_equal 2, status
      assert_includes err, "traced.pit is traced and"
    end
  end

  # On Ruby 3.1 an empty report would look like a program that never waited.
  def test_states_that_nobody_told_are_refused
    built = RecordingBuilder.build(thread_states: false, ruby: { "version" => "3.1.2" }) do |segment|
      segment.row(state: 3, stack: [["work", "a.rb", 1, 2]], wall: 5)
    end
    File.binwrite(@file, built)
    untold = /--state \w+: Ruby 3\.1\.2 told no thread states, as Ruby 3\.2 and newer do/
    {
      %w[report --state gvl] => [@file, untold], %w[export --to collapsed --out - --state blocked] => [@file, untold],
      %w[report --state gvl --view threads] => [@file, untold],
      %w[report --tree --state running] => [kinds.fetch(:traced), /--state running: the recording has no samples/]
    }.each do |words, (file, message)|
      status, out, err = run_command(*words, file)
      assert_equal [2, "", 1], [status, out, err.lines.size], err
      assert_match(message, err)
    end
    assert_equal 0, run_command("report", @file, "--state", "unknown")[0]
  end

  def test_what_was_measured_takes_no_options_of_recordings
    file = File.join(@dir, "kept.jsonl")
    head = { schema: "pitwall/measurements-1", kind: "compare", settings: {}, sides: [{ name: "A" }, { name: "B" }],
             command: "pitwall compare -e 1 -e 2" }
    File.write(file, "#{JSON.generate(head)}\n")
    {
      %w[--tree] => "--tree: is for recordings", %w[--view gc] => "--view gc: is for",
      %w[--limit 3] => "--limit: is for", %w[--no-source] => "--no-source: is for",
      %w[--why] => "no profiles; to measure and profile again: pitwall compare --why -e 1 -e 2"
    }.each do |options, message|
      status, out, err = run_command("report", file, *options)
      assert_equal [2, "", 1], [status, out, err.lines.size], err
      assert_includes err, message
    end
    assert_match(/--why: .* pitwall compare A\.pit B\.pit/, run_command("report", @file, "--why")[2])
  end

  def test_warnings_and_the_difference_stand_in_the_first_part
    File.binwrite(@file, ShopRecording.bytes(stop: false) + ShopRecording.bytes(pid: 77))
    difference = Struct.new(:wall_ratio, :cpu_ratio).new(1.01, 1.05)
    require "pitwall/cli/verbs/report"
    text = Pitwall::CLI::Report.render(@file, apart: true, difference: difference)
    parts = text.split("\n\nshop.rb")
    [/ended without stop/, /wall ×1\.010/].each do |said|
      assert_equal [1, 0], parts.map { |part| part.scan(said).size }
    end
  end

  def test_a_name_that_is_no_text
    file = File.join(@dir, "\xFF.pit")
    File.rename(@file, file)
    status, out, err = run_command("report", file)
    assert_equal [0, ""], [status, err]
    assert_match(/1,990 samples/, out)
  end

  def test_a_bad_file_in_a_folder_does_not_cost_the_others_where_salvage_is_asked_for
    File.write(File.join(@dir, "bad.pit"), "PITWALL 7\n and more")
    status, _, err = run_command("report", @dir)
    assert_equal 5, status
    assert_match(/bad\.pit: is in format version 7 .*; --salvage reads the others$/, err)
    status, out, = run_command("report", @dir, "--salvage")
    assert_equal 0, status
    assert_match(/^! skipped .*bad\.pit/, out)
    assert_match(/1,990 samples/, out)
    FileUtils.rm(@file)
    status, _, err = run_command("report", @dir, "--salvage")
    assert_equal 5, status
    assert_match(/no recording in it could be read; skipped .*bad\.pit/, err)
  end

  def test_mistakes_are_one_line_and_a_status
    empty_folder = File.join(@dir, "empty")
    Dir.mkdir(empty_folder)
    {
      [] => [2, "no recording"], [@file, "--callers", "Shop::Fib.fob"] => [2, "did you mean Shop::Fib.fib?"],
      [@file, "--thread", "x"] => [2, "no thread \"x\""], [@file, "--process", "1"] => [2, "no process 1"],
      [@file, "--limit", "0"] => [2, "--limit 0"], [@file, "--limit", "9" * 20] => [2, "must be 1000000000 or less"],
      [@file, "--out", ""] => [2, "--out needs a name"], [@file, @file] => [2, "is named twice"],
      [@file, "--callers", "Nope"] => [2, "--limit 100 lists what it has"],
      [@file, "--label", "x=y"] => [2, "it has none: the program says"],
      [@file, "--threshold", "101"] => [2, "--threshold"],
      [@file, "--blackbox", "nothing at all"] => [2, "no method"],
      [@file, "--lines", "nope.rb"] => [2, "no file or method \"nope.rb\""],
      [@file, "--view", "callers"] => [2, "use --callers NAME"], [@file, "--view", "x"] => [2, "it takes flat"],
      [@file, "--format", "markdown", "--tree"] => [2, "leave out --tree"],
      [@file, "--format", "markdown", "--apart"] => [2, "leave out --apart"],
      [@file, "--format", "markdown", "--lines", "fib"] => [2, "leave out --lines"],
      [@file, "--format", "markdown", "--audit"] => [2, "leave out --audit"],
      [@file, "--tree", "--callers", "fib"] => [2, "ask for one of --tree, --callers"],
      [File.join(@dir, "none.pit")] => [2, "no such file"], [empty_folder] => [2, "holds no recordings"],
      ["-"] => [5, "save it first"], [@file, "--out", File.join(@dir, "no", "such")] => [2, "cannot write --out"],
      [__FILE__] => [5, "is not a recording"]
    }.each do |arguments, (status, message)|
      got, _, err = run_command("report", *arguments)
      assert_equal status, got, err
      assert_equal 1, err.lines.size, err
      assert_includes err, message
    end
  end

  def test_options_that_are_refused_are_named_as_the_help_names_them
    help = run_command("report", "--help")[1]
    views = Pitwall::Views
    keys = views::Asked::NOT_OF_PAGES + views::WholeProcess::REFUSED + views.all.flat_map(&:own_options)
    keys.each { |key| assert_match(/^ +#{views.option_name(key)}\b/, help) }
    _, _, err = run_command("report", @file, "--label", "r=b", "--format", "html", "--out", File.join(@dir, "x.html"))
    assert_match(/leave out --label$/, err)
  end

  def test_salvage
    bytes = ShopRecording.bytes
    bytes.setbyte(bytes.index("STAT") + 25, 0)
    File.binwrite(@file, bytes)
    assert_equal 5, run_command("report", @file)[0]
    salvaged = run_command("report", @file, "--salvage")[1].gsub("\n  ", " ")
    assert_match(/! skipped \d+ bytes at byte \d+: chunk STAT fails its checksum/, salvaged)
  end

  def test_audit_lists_and_redact_hides
    _, out, = run_command("report", @file, "--audit")
    assert_match(%r{names of methods and blocks: 14.*other paths.*/srv/app/.*names of threads: 2}m, out)
    assert_match(/names of threads: 2.*header: program: 1/m, out)
    classes = JSON.parse(run_command("report", @file, "--audit", "--redact", "--format", "json")[1])["classes"]
    refute_includes JSON.generate(classes), "/srv"
    [%w[--format text], %w[--format json --tree --view lines], %w[--format markdown]].each do |options|
      refute_includes run_command("report", @file, "--redact", *options)[1], "/srv"
    end
  end

  def test_out_and_markdown
    out = File.join(@dir, "report.md")
    assert_equal [0, "", ""], run_command("report", @file, "--idle", "--format", "markdown", "--out", out)
    assert_match(/^\| 48\.0% \| .* \| `Kernel#sleep` \|/, File.read(out).sub(/4\d\.\d%/, "48.0%"))
  end

  def test_out_is_never_the_recording
    link = File.join(@dir, "link.pit")
    File.symlink(@file, link)
    hard = File.join(@dir, "hard.pit")
    File.link(@file, hard)
    before = File.binread(@file)
    [@file, link, hard].product([["report"], %w[export --to collapsed]]).each do |out, (verb, *options)|
      status, _, err = run_command(verb, @file, *options, "--out", out)
      assert_equal [2, 1], [status, err.lines.size], err
      assert_includes err, "is the recording"
      assert_equal before, File.binread(@file)
    end
    assert_equal 2, run_command("report", link, "--out", @file)[0]
  end

  def test_out_is_written_whole_or_not_at_all
    out = File.join(@dir, "out.txt")
    File.write(out, "old")
    File.chmod(0o640, out)
    link = File.join(@dir, "to_out")
    File.symlink(out, link)
    assert_raises(RuntimeError) { Pitwall::CLI::OutputFile.write(link) { |io| io.write("half") && raise("oh") } }
    assert_equal "old", File.read(out)
    assert_equal 0, run_command("report", @file, "--out", link)[0]
    assert File.symlink?(link)
    assert_equal [0o640, true], [File.stat(out).mode & 0o777, File.read(out).include?("samples")]
    assert_empty Dir.children(@dir).grep(/part/)
    assert_equal 0, run_command("report", @file, "--out", "/dev/null")[0]
  end

  def test_render_for_other_verbs
    require "pitwall/cli/verbs/report"
    text = Pitwall::CLI::Report.render(@file, format: "text", weight: "wall", limit: 3, apart: false, difference: nil,
                                              width: 80, palette: Pitwall::Show::Plain)
    assert_match(/more methods \(--limit 11 shows all\)/, text)
  end

  def test_source_is_shown_only_when_unchanged
    source = File.join(@dir, "work.rb")
    File.write(source, "def work\n  sleep 1\nend\n")
    { 1_790_000_000 => false, Time.now.to_i + 60 => true }.each do |started, shown|
      built = RecordingBuilder.build(started_at_ns: started * 1_000_000_000) do |segment|
        segment.row(stack: [["work", source, 1, 2]], wall: 5)
      end
      File.binwrite(@file, built)
      File.utime(Time.now, Time.at(1_790_000_000 + 5), source)
      assert_equal shown, run_command("report", @file, "--lines", "work")[1].include?("sleep 1")
    end
  end

  private

  def json(*arguments) = JSON.parse(run_command("report", @file, "--format", "json", *arguments)[1])

  def run_command(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Pitwall::CLI.run(arguments, out: out, err: err), out.string, err.string]
  end
end
