# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/page_contents"
require_relative "../support/shop_recording"
require_relative "../support/toy_view"
require "json"
require "pitwall/cli"
require "stringio"
require "tmpdir"

# A view is one object, and whatever lists views reads them off one list: shown with a view of a single file.
class ViewsListTest < Minitest::Test
  include PageContents

  ROW = ["/srv/app/lib/cart_ja.rb", 1].freeze
  Views = Pitwall::Views

  def setup
    @dir = Dir.mktmpdir("pitwall-views-")
    @file = File.join(@dir, "shop.pit")
    File.binwrite(@file, ShopRecording.bytes)
  end

  def teardown = FileUtils.rm_rf(@dir)

  def run_command(*arguments)
    out, err = StringIO.new, StringIO.new
    [Pitwall::CLI.run(arguments, out: out, err: err), out.string, err.string]
  end

  def test_without_the_toy_there_is_no_word_of_it
    words = run_command("report", "--help")[1] + run_command("completion", "bash")[1]
    refute_match(/\btoy\b/, words)
    assert_match(/--view toy: it takes flat, .*, boot$/, run_command("report", @file, "--view", "toy")[2])
  end

  def test_help_and_completion
    ToyView.added do
      help = run_command("report", "--help")[1]
      assert_match(/caches, +boot, toy/, help.gsub(/\s+/, " "))
      assert_match(/^ +--toy-least N +of --view toy: files with so many methods$/, help)
      %w[bash zsh fish].each do |shell|
        script = run_command("completion", shell)[1]
        assert_match(/boot[\s"']+toy\b/, script, shell)
        assert_includes script, "toy-least", shell
      end
    end
  end

  def test_text_json_and_markdown
    ToyView.added do
      status, text, err = run_command("report", @file, "--view", "toy")
      assert_equal [0, ""], [status, err]
      assert_match(/\Ashop\.rb · ruby 3\.4\.1.*^ {6}1  #{ROW[0]}$/m, text)
      json = JSON.parse(run_command("report", @file, "--view", "toy", "--tree", "--format", "json")[1])
      assert_includes json["toy"], { "file" => ROW[0], "methods" => 1 }
      assert_operator json.keys.index("tree"), :<, json.keys.index("toy")
      markdown = run_command("report", @file, "--view", "toy", "--format", "markdown", "--toy-least", "2")[1]
      assert_equal "| methods | file |\n|---:|---|\n| 2 | /srv/app/app/models/shop/checkout/cart.rb |\n", markdown
    end
  end

  def test_what_it_needs_and_its_option
    bare = File.join(@dir, "bare.pit")
    File.binwrite(bare, RecordingBuilder.build { |segment| segment.row(stack: [["Integer#+", "", 0, 0, 1]], wall: 5) })
    ToyView.added do
      { [bare, "--view", "toy"] => "--view toy: the recording names no file: record one with pitwall profile -- CMD",
        [@file, "--toy-least", "3"] => "--toy-least is for the view of toy: add --view toy, or leave it out",
        [@file, "--view", "tox"] => "it takes flat, calls",
        [@file, "--tree", "--format", "markdown"] => "queries, tests or toy: leave out --tree",
        [@file, "--view", "toy", "--view", "gc"] => "ask for one of --view toy, --view gc" }.each do |words, message|
        status, out, err = run_command("report", *words)
        assert_equal [2, "", 1], [status, out, err.lines.size], err
        assert_includes err, message
      end
    end
  end

  def test_the_data_of_the_page
    ToyView.added do
      tabs = JSON.parse(page_json(run_command("report", @file, "--format", "html")[1]))["tabs"]
      assert_equal %w[syscalls toy about], tabs.last(3).map { |tab| tab["key"] }
      assert_includes tabs[-2]["rows"], ROW.reverse
    end
    tabs = JSON.parse(page_json(run_command("report", @file, "--format", "html")[1]))["tabs"]
    assert_equal ["Flame graph", "Call tree", "Methods", "Source", "Threads", "Requests", "Queries", "Tests", "Labels",
                  "GC", "Objects", "Growth", "System calls", "About"], tabs.map { |tab| tab["title"] }
  end

  def test_two_views_have_two_names
    assert_raises(ArgumentError) { Views.add(Views.named("flat").dup) }
    assert_raises(KeyError) { Views.named("toy") }
  end

  # In the order of the help, and each with the files that rules name.
  def test_the_list
    names = %w[flat calls tree bottom-up callers callees graph lines threads labels requests queries tests gc gc-cost
               allocations growth syscalls caches boot]
    assert_equal names, Views.all.map(&:name)
    files = Dir[File.expand_path("../../lib/pitwall/views/*.rb", __dir__)].map { |path| File.basename(path, ".rb") }
    assert_empty Views.all.map { |view| view.name.tr("-", "_") } - files
    Views.all.each do |view|
      assert_empty view.formats - %w[text json markdown], view.name
      assert view.own_options.all? { |key| Views.option_name(key).start_with?("--") }
    end
  end

  # The command names no view: it asks the list.
  def test_the_command_names_no_view
    source = File.read(File.expand_path("../../lib/pitwall/cli/verbs/report.rb", __dir__)).gsub(/^ *#.*|"[^"]*"/, "")
    named = Views.all.map { |view| view.name.tr("-", "_") }.select { |name| source.match?(/(?:\b|:)#{name}\b/) }
    assert_empty named
  end
end
