# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/page_contents"
require_relative "../support/random_recording"
require "pitwall/cli"
require "pitwall/analyse"
require "json"
require "stringio"
require "tmpdir"
require "zlib"

# Labels in every view, and their part of the format.
class LabelsReportTest < Minitest::Test
  include PageContents

  SHOW = { "route" => "orders#show", "tenant" => "acme" }.freeze
  INDEX = { "route" => "orders#index" }.freeze
  MS = 1000 # of the unit

  def setup = @dir = Dir.mktmpdir("pitwall-labels-")
  def teardown = FileUtils.rm_rf(@dir)

  def bytes(**head)
    RecordingBuilder.build(**head) do |segment|
      segment.thread(1, "main")
      segment.thread(2, "worker")
      segment.row(stack: [["App#call", "/app/a.rb", 1, 2]], wall: 10 * MS, cpu: 5 * MS)
      load = [["App#call", "/app/a.rb", 1, 2], ["Order#load", "/app/o.rb", 1, 3]]
      list = [["App#call", "/app/a.rb", 1, 2], ["Order#list", "/app/o.rb", 9, 9]]
      segment.row(stack: load, wall: 30 * MS, cpu: 20 * MS, labels: SHOW)
      segment.row(thread: 2, stack: list, wall: 60 * MS, cpu: 7 * MS, labels: INDEX)
      segment.row(stack: load, wall: 5 * MS, cpu: 5 * MS, labels: { "job" => "<script>" })
      segment.flush
      segment.row(stack: [["App#call", "/app/a.rb", 1, 2]], wall: 1 * MS, cpu: 1 * MS, labels: SHOW)
      segment.open(stack: [["App#call", "/app/a.rb", 1, 2]], wall: 2 * MS, cpu: 1 * MS, labels: INDEX)
      segment.work(SHOW, count: 3, ns: 90_000_000)
      segment.work(INDEX, count: 1, ns: 70_000_000)
    end
  end

  def recording(name = "a.pit", content = bytes)
    File.join(@dir, name).tap { |path| File.binwrite(path, content) }
  end

  def report(*arguments, file: recording)
    out, err = StringIO.new, StringIO.new
    status = Pitwall::CLI.run(["report", file, *arguments], out: out, err: err)
    [status, out.string, err.string]
  end

  def json(*arguments) = JSON.parse(report("--format", "json", *arguments)[1])

  def test_the_reader_has_them
    segment = RandomRecording.read(bytes).segments.first
    assert_equal [{}, SHOW, INDEX, { "job" => "<script>" }], segment.label_sets
    assert segment.labelled?
    sums = Hash.new(0)
    segment.tallies.each { |tally| tally.each { |_, wall,| sums[tally.label_id] += wall / MS } }
    assert_equal({ 0 => 10, 1 => 31, 2 => 62, 3 => 5 }, sums)
    assert_equal [[1, 3, 90_000_000], [2, 1, 70_000_000]], segment.works.map(&:to_a)
    assert_empty segment.marks
  end

  # Rows over and over the same, whatever order they come in: what each_rows tells, the tallies add up to.
  def test_tallies_are_the_sums_of_the_rows
    random = Random.new(11)
    sets = Array.new(5) { |n| n.zero? ? {} : { "n" => n.to_s } }
    stacks = Array.new(4) { |n| [["m#{n}", "/a.rb", n, n]] }
    expected = Hash.new(0)
    content = RecordingBuilder.build do |segment|
      3.times do
        rows = Array.new(200) { [random.rand(2) + 1, random.rand(3), random.rand(4), random.rand(5), random.rand(9)] }
        rows = rows.sort_by { |row| row[3] } if random.rand(2).zero?
        rows.each do |thread, state, stack, set, wall|
          segment.row(thread: thread, state: state, stack: stacks[stack], wall: wall, labels: sets[set])
          expected[[thread, state, "m#{stack}", sets[set]]] += wall
        end
        segment.flush
      end
    end
    segment = Pitwall::Record.read(recording("r.pit", content)).segments.first
    tallied = Hash.new(0)
    segment.tallies.each do |tally|
      tally.each do |node, wall,|
        tallied[[tally.thread_id, tally.state, segment.frame(node).name, segment.labels(tally.label_id)]] += wall
      end
    end
    assert_equal expected, tallied
    timed = Hash.new(0)
    segment.each_rows do |rows|
      rows.each do |thread, state, node, wall, _, _, label|
        timed[[thread, state, segment.frame(node).name, segment.labels(label)]] += wall
      end
    end
    assert_equal expected, timed
  end

  def test_recordings_without_labels_are_as_they_were
    content = RecordingBuilder.build { |segment| segment.row(stack: [["a"]], wall: 3) }
    segment = RandomRecording.read(content).segments.first
    assert_equal [[{}], false, [0]], [segment.label_sets, segment.labelled?, segment.tallies.map(&:label_id)]
    status, out, = report("--view", "labels", file: recording("plain.pit", content))
    assert_equal 0, status
    assert_match(/no labels were recorded/, out)
  end

  def test_filters_in_every_view
    assert_equal 31_000_000, json("--label", "route=orders#show")["total"]
    assert_equal 62_000_000, json("--label", "route=orders#index")["total"]
    assert_equal 31_000_000, json("--label", "route=orders#show", "--label", "tenant=acme")["total"]
    filtered = json("--label", "route=orders#index", "--tree", "--bottom-up", "--view", "lines", "--view", "threads",
                    "--callers", "Order#list", "--view", "labels")
    assert_equal [62_000_000], filtered["threads"].map { |thread| thread["wall"] }.then { |walls| [walls.sum] }
    refute_match(/Order#load/, JSON.generate(filtered.slice("methods", "tree", "bottom_up", "lines", "callers")))
    assert_equal %w[orders#index], filtered["labels"]["values"].map { |row| row["value"] }
    _, text, = report("--label", "route=orders#show")
    assert_match(/^only route=orders#show: 31\.0 ms/, text)
    refute_match(/Order#list/, text)
  end

  def test_exports_are_filtered
    %w[collapsed speedscope callgrind].each do |format|
      out = StringIO.new
      words = ["export", recording, "--to", format, "--out", "-", "--label", "route=orders#index"]
      assert_equal 0, Pitwall::CLI.run(words, out: out, err: StringIO.new)
      assert_match(/Order#list/, out.string, format)
      refute_match(/Order#load;|Order#load \d/, out.string, format)
      next unless format == "speedscope"

      weights = JSON.parse(out.string)["profiles"].sum { |profile| profile["weights"].sum }
      assert_equal 60_000_000 + 2_000_000, weights
    end
  end

  def test_pprof_and_the_firefox_profiler_are_filtered
    {
      "pprof" => ->(bytes) { Zlib.gunzip(bytes) },
      "firefox" => ->(text) { text.sub(/"stringArray":.*/m) { |strings| strings } }
    }.each do |format, text|
      out = StringIO.new(+"".b)
      words = ["export", recording, "--to", format, "--out", "-", "--label", "route=orders#index"]
      assert_equal 0, Pitwall::CLI.run(words, out: out, err: StringIO.new)
      assert_includes text.call(out.string), "Order#list", format
      refute_includes text.call(out.string), "Order#load", format
    end
  end

  # Two recordings of one program: under the label half of it is another method now, beside it everything is.
  def test_compare_of_what_ran_under_a_label
    files = %w[before after].map do |side|
      recording("#{side}.pit", RecordingBuilder.build do |segment|
        segment.thread(1, "main")
        400.times do |at|
          call = ["App#call", "/app/a.rb", 1, 2]
          order = side == "before" || at.odd? ? "Order#load" : "Order#loop"
          segment.row(stack: [call, [order, "/app/o.rb", 1, 3]], wall: MS, cpu: MS, labels: SHOW)
          segment.row(stack: [call, ["Beside##{side}", "/app/b.rb", 1, 3]], wall: MS, cpu: MS, labels: INDEX)
        end
      end)
    end
    compare = lambda do |*options|
      out, err = StringIO.new, StringIO.new
      [Pitwall::CLI.run(["compare", *files, *options], out: out, err: err), out.string, err.string]
    end
    names = ->(text) { text.scan(/Order#\w+|Beside#\w+/).uniq.sort }
    assert_equal %w[Beside#after Beside#before Order#load Order#loop], names.call(compare.call[1])
    assert_equal %w[Order#load Order#loop], names.call(compare.call("--label", "route=orders#show")[1])
    page = File.join(@dir, "x.html")
    assert_equal 0, compare.call("--label", "route=orders#show", "--format", "html", "--out", page).first
    table = JSON.parse(page_json(File.read(File.join(@dir, "x.html"), encoding: "UTF-8")))["why"][0]["tables"][0]
    heads = table["heads"].values_at(0, -2, -1).map { |head| head.is_a?(Hash) ? head["text"] : head }
    assert_equal ["method", "where", "mostly through"], heads
    assert_equal [["Order#load", "green", "400 ms", "200 ms", "100.0%", "50.0%"],
                  ["Order#loop", "red", "–", "200 ms", "–", "50.0%"]],
                 table["rows"].map { |row| [row[0], row[1]["style"], *row[3..6]] }.sort
    {
      %w[--label route=x] => "before.pit: no label route=x", %w[--label route] => "write it as NAME=VALUE",
      %w[--label a=b --predicted x.rb:1] => "leave out --label"
    }.each do |options, message|
      status, _, err = compare.call(*options)
      assert_equal [2, 1], [status, err.lines.size], err
      assert_includes err, message
    end
  end

  # In text, JSON, pages and exports: names stay, values are hashes that stay the same.
  def test_redaction_hashes_the_values
    hashed = "hashed-#{Digest::SHA256.hexdigest("orders#index")[0, 12]}"
    assert_includes report("--view", "labels", "--redact")[1], hashed
    assert_equal 62_000_000, json("--redact", "--label", "route=orders#index")["total"]
    assert_equal 62_000_000, json("--redact", "--label", "route=#{hashed}")["total"]
    assert_match(/labels that the program set[^\n]*\n(?:  .*\n)*?  #{hashed}/, report("--audit", "--redact")[1])
    exports = %w[collapsed speedscope callgrind pprof firefox].map { |format| ["export", "--to", format, "--out", "-"] }
    outputs = [%w[report --view labels], %w[report --view requests], %w[report --view labels --format json],
               %w[report --audit], *exports]
    outputs.each do |verb, *options|
      out = StringIO.new(+"".b)
      status = Pitwall::CLI.run([verb, recording, *options, "--redact"], out: out, err: StringIO.new)
      assert_equal 0, status, options.inspect
      text = options.include?("pprof") ? Zlib.gunzip(out.string) : out.string
      refute_match(/orders#|acme/, text.b, options.inspect)
    end
    page = StringIO.new
    Pitwall::CLI.run(["report", recording, "--format", "html", "--redact"], out: page, err: StringIO.new)
    data = page_data(page.string)
    assert_includes data, hashed
    refute_match(/orders#|acme/, data.b)
  end

  def test_the_view
    _, text, = report("--view", "labels")
    assert_match(/share +wall +cpu +requests +mean +route/, text)
    assert_match(/66\.7% +62\.0 ms +8\.00 ms +1 +70\.0 ms +orders#index$/, text)
    assert_match(/33\.3% +31\.0 ms +21\.0 ms +3 +30\.0 ms +orders#show$/, text)
    assert_match(/15\.0 ms +10\.0 ms +\(without\)$/, text)
    assert_match(/other labels: --label-key tenant, --label-key job/, text)
    _, text, = report("--label-key", "job")
    assert_match(/100% +5\.00 ms .*<script>/, text)
    labels = json("--label-key", "tenant")["labels"]
    assert_equal ["tenant", %w[route tenant job]], labels.values_at("name", "names")
    assert_equal [{ "value" => "acme", "wall" => 31_000_000, "cpu" => 21_000_000, "captures" => 2, "requests" => 3,
                    "request_ns" => 90_000_000 },
                  { "value" => nil, "wall" => 77_000_000, "cpu" => 18_000_000, "captures" => 3, "requests" => 1,
                    "request_ns" => 70_000_000 }], labels["values"]
  end

  def test_bad_input
    [[%w[--label route], "--label route: write it as NAME=VALUE"],
     [%w[--label route=x], "no label route=x in the recording; route is orders#index, orders#show"],
     [%w[--label rout=x], "no label rout=x in the recording; its labels are route, tenant, job"],
     [%w[--label route=orders#index --label tenant=acme],
      "nothing in the recording has all of the labels route=orders#index, tenant=acme"],
     [%w[--label-key color], "no label color in the recording; it has route, tenant, job"],
     [%w[--view gc --label route=orders#show],
      "--label: collections are of the whole process"]].each do |arguments, message|
      status, out, err = report(*arguments)
      assert_equal [2, ""], [status, out], arguments.inspect
      assert_match(/\Apitwall: #{Regexp.escape(message)}[^\n]*\n\z/, err)
    end
  end

  def test_audit
    assert_match(/labels that the program set.*acme/m, report("--audit")[1])
  end

  def test_damage
    bad = { "LABL" => [[1], [0], [1], [1]], "MARK" => [[1], [1], [9], [1], [1]], "WORK" => [[1], [9], [1], [1]] }
    bad.each do |type, (count, *columns)|
      content = RecordingBuilder.build do |segment|
        segment.chunk(type, count.pack("w*") + columns.map { |values| RecordingBuilder.column(values) }.join)
      end
      error = assert_raises(Pitwall::BadRecording) { Pitwall::Record.read(recording("bad.pit", content)) }
      assert_match(/label set|names string/, error.message)
      Pitwall::Record.read(recording("bad.pit", content), salvage: true)
    end
    columns = [[1 << 40], [0], [0]].map { |values| RecordingBuilder.column(values) }
    huge = RecordingBuilder.build { |segment| segment.chunk("LABL", [1].pack("w") + columns.join) }
    assert_raises(Pitwall::BadRecording) { Pitwall::Record.read(recording("huge.pit", huge)) }
    # The chunk with the names is damaged: salvage reads the times without them.
    content = bytes.dup
    content.setbyte(content.index("LABL") + 21, content.getbyte(content.index("LABL") + 21) ^ 0x55)
    salvaged = Pitwall::Record.read(recording("cut.pit", content), salvage: true)
    assert_equal 108 * MS, salvaged.segments.first.tallies.sum { |tally| tally.cells.each_slice(3).sum(&:first) }
  end
end
