# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_recording"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require_relative "../support/traced_recording"
require "json"
require "pitwall/cli"
require "pitwall/views"
require "stringio"
require "tmpdir"

# `report --view graph`: callers and callees of each symbol in shares of the whole.
class GraphViewTest < Minitest::Test
  def setup
    @dir = Dir.mktmpdir("pitwall-graph-")
    @file = File.join(@dir, "boot.pit")
    File.binwrite(@file, NativeRecording.bytes)
  end

  def teardown = FileUtils.rm_rf(@dir)

  def report(*options, file: @file, status: 0)
    out, err = StringIO.new, StringIO.new
    assert_equal status, Pitwall::CLI.run(["report", file, *options], out: out, err: err), err.string
    status.zero? ? out.string : err.string
  end

  def graph(*options, **rest) = report("--view", "graph", *options, **rest)

  # The symbols of a block, each with its sign.
  def block(text, name)
    blocks = text[/^ *of all.*/m].split("\n\n").map { |block| block.lines.grep(/%/).map { |line| symbol(line) } }
    blocks.find { |block| block.include?(name) }
  end

  def symbol(line) = line[/  \d+ {2,}(.+?)(?: {2,}\S+)?$/, 1]

  def test_a_block_has_the_callers_above_and_the_callees_below
    text = graph("--native")
    assert_includes text, "↑ callers, ↓ callees. Shares are of the whole; recursion counts once."
    assert_equal ["↑ rb_require_safe", "rb_feature_p", "↓ rb_string_value_ptr", "↓ loaded_feature_path",
                  "↓ rb_file_expand_path"], block(text, "rb_feature_p")
    assert_match(/^ 76\.8%  16\.4%  7\.68 ms       1  rb_feature_p +libruby-3\.1\.so\.3\.1\.2$/, text)
    assert_match(/^ 19\.0% +1\.90 ms       1    ↓ lstat64 +libc\.so\.6$/, text)
    assert_equal ["↑ rb_feature_p", "↑ rb_require_safe", "rb_string_value_ptr"], block(text, "rb_string_value_ptr")
  end

  def test_native_frames_are_folded_unless_asked_for
    text = graph
    assert_equal ["↑ <main>", "Kernel#require"], block(text, "Kernel#require")
    refute_match(/rb_feature_p|libruby/, text)
  end

  def test_the_least_share
    text = graph("--native", "--min", "10%")
    assert_match(/^  3\.8% .*↑ \(1 more caller\)$/, text)
    assert_match(/^3 symbols below 10\.0% \(--threshold 0 shows all\)$/, text)
    assert_equal text, graph("--native", "--threshold", "10")
    assert_match(/^every symbol is below the threshold: 1 symbol below 90\.0% \(--threshold 0 shows all\)$/,
                 graph("--object", "libc", "--min", "90"))
    assert_match(/--min 1x/, graph("--min", "1x", status: 2))
    assert_match(/must be from 0 to 100 percent/, graph("--min", "101%", status: 2))
  end

  def test_more_symbols_than_the_limit
    assert_match(/^15 more symbols \(--limit 17 shows all\)$/, graph("--native", "--limit", "2"))
  end

  # As perf's report of one shared object: its rows only, in shares of the whole.
  def test_one_shared_object
    text = graph("--object", "libruby.so")
    assert_match(/^ 76\.8%  16\.4% .* rb_feature_p /, text)
    refute_match(/^.*%  +[\d.]+%.* (?:lstat64|Kernel#require|main)\b/, text)
    assert_equal ["↑ Kernel#require", "rb_require_safe", "↓ rb_feature_p", "↓ rb_realpath_internal",
                  "↓ rb_string_value_ptr"], block(text, "rb_require_safe")
    assert_equal ["↑ rb_realpath_internal", "lstat64"], block(graph("--object", "libc.so.6"), "lstat64")
    assert_match(/no object "libxml2.so" in the recording: it has ruby3\.1, libruby-3\.1\.so\.3\.1\.2, libc\.so\.6$/,
                 graph("--object", "libxml2.so", status: 2))
  end

  def test_a_symbol_with_the_sum_of_its_places_and_its_chains
    text = graph("--native", "--symbol", "rb_feature_p").gsub(/\n +(?=\S)/, " ")
    assert_includes text, "from 1 place: 76.8% = 16.4% self + 28.4% rb_string_value_ptr + 21.0% " \
                          "loaded_feature_path + 11.0% rb_file_expand_path; recursion counts once"
    chains = text[/Chains of callers.*/m].lines.drop(2).map { |line| line.split(/  +/)[2].strip }
    assert_equal ["rb_feature_p", "↳ rb_require_safe", "↳ Kernel#require", "↳ <main>", "↳ rb_vm_exec", "↳ main"], chains
  end

  # A symbol below the threshold is shown with what is heavy in it.
  def test_a_light_symbol
    text = graph("--native", "--symbol", "rb_string_value_ptr", "--min", "90%")
    assert_match(/from 2 places: 32\.2% = 32\.2% self/, text)
    assert_match(/^32\.2% .* rb_string_value_ptr/, text[/Chains.*/m])
  end

  # Collection is scattered over functions; folded into one, its callers say who allocates.
  def test_garbage_collection_as_a_blackbox
    text = graph("--native", "--blackbox", "garbage_collect", "--symbol", "garbage_collect")
    assert_includes text, "from 1 place: 11.0% = 11.0% self"
    chains = text[/Chains of callers.*/m].lines.drop(2).map { |line| line[/(\S+)(?:  +\S+)?$/, 1] }
    assert_equal %w[garbage_collect vm_xmalloc str_new rb_file_expand_path rb_feature_p rb_require_safe Kernel#require],
                 chains.first(7)
    refute_match(/gc_mark|st_foreach/, graph("--native", "--blackbox", "garbage_collect", "--min", "0"))
  end

  # Each line that calls a Ruby method is a place.
  def test_places_of_ruby_methods_are_lines
    main, work = ["<main>", "/app/a.rb", 1], ["Shop#work", "/app/a.rb", 20, 21]
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: [[*main, 3], work], wall: 300)
      segment.row(stack: [[*main, 7], work], wall: 600)
      segment.row(stack: [[*main, 7]], wall: 100)
    end
    File.binwrite(@file, bytes)
    text = graph("--symbol", "Shop#work")
    assert_includes text, "from 2 places: 90.0% = 90.0% self"
    assert_equal [["60.0%", "/app/a.rb:7"], ["30.0%", "/app/a.rb:3"]],
                 text.lines.grep(/↑ <main>/).map { |line| [line.split.first, line.split.last] }
    edge = JSON.parse(graph("--format", "json")).dig("graph", "symbols").find { |row| row["name"] == "Shop#work" }
    assert_equal [2, [{ "line" => 7, "total" => 600_000 }, { "line" => 3, "total" => 300_000 }]],
                 [edge["places"], edge["callers"][0]["places"]]
  end

  def test_a_trace_counts_calls
    File.binwrite(@file, TracedRecording.bytes)
    text = graph
    assert_match(/^of all +self +wall  places  calls  symbol$/, text)
    assert_match(/^ *[\d.]+% +[\d.]+% .* 8  Shop#sum/, text)
    assert_match(/ 6    ↑ Array#each/, text)
    assert_includes graph("--symbol", "Shop#sum"), "called 8 times"
  end

  def test_json_has_all_and_markdown_a_table
    json = JSON.parse(graph("--native", "--format", "json"))["graph"]
    assert_equal [0, 17], [json["hidden"], json["symbols"].size]
    feature = json["symbols"].find { |row| row["name"] == "rb_feature_p" }
    assert_equal [NativeRecording::RUBY, 3, 7_679_000, 1_641_000, 76.79],
                 feature.values_at("file", "kind", "total", "self", "total_percent")
    assert_equal [["rb_require_safe", 76.79]], feature["callers"].map { |row| row.values_at("name", "total_percent") }
    one = JSON.parse(graph("--native", "--format", "json", "--symbol", "rb_feature_p"))["graph"]
    assert_equal ["rb_feature_p", "rb_require_safe"], one["chains"].first(2).map { |row| row["name"] }
    markdown = graph("--native", "--format", "markdown", "--min", "20", "--limit", "7")
    assert_includes markdown, "| 76.8% | 16.4% | 7.68 ms | 1 | **`rb_feature_p`** | `libruby-3.1.so.3.1.2` |\n"
    assert_match(/^\| 28\.4% \|  \| 2\.84 ms \| 1 \| ↓ `rb_string_value_ptr` \| /, markdown)
    assert_match(/1 more symbol\. 9 symbols below the threshold\.$/, markdown)
    one = graph("--native", "--format", "markdown", "--symbol", "rb_feature_p")
    assert_match(/^`rb_feature_p`: 76\.8% = 16\.4% self/, one)
  end

  def test_what_is_refused
    { ["--symbol", "rb_featur_p", "--native"] => /did you mean rb_feature_p\?$/,
      ["--symbol", "rb_feature_p"] => /no method "rb_feature_p" in .* \(a native function\? add --native\)$/,
      ["--symbol", "main", "--object", "libc"] => /leave one out$/,
      ["--format", "html"] => /leave out --view graph$/ }.each do |options, message|
      error = graph(*options, status: 2)
      assert_match message, error
      assert_equal 1, error.lines.size
    end
    assert_match(/--object is for the view of graph: add --view graph/, report("--object", "libc", status: 2))
    File.binwrite(@file, ShopRecording.bytes)
    assert_match(/the recording has no native functions/, graph("--object", "libc", status: 2))
  end

  def test_no_line_is_wider_than_the_terminal
    [60, 73, 100, 160].each do |width|
      [{}, { symbol: "rb_feature_p" }].each do |query|
        query = Pitwall::Analyse::Report::Query.new(**query)
        report = Pitwall::Analyse::Report.new(Pitwall::Record.read(@file).segments, query)
        drawing = Pitwall::Views::Drawing.new(report: report, file: @file, width: width)
        Pitwall::Views.named("graph").body(drawing).each do |line|
          assert_operator Pitwall::Show::Text.width(line), :<=, width, line
        end
      end
    end
  end
end
