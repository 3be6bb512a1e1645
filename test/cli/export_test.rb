# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/shop_recording"
require "pitwall/cli"
require "pitwall/show"
require "json"
require "minitest/mock"
require "stringio"
require "tmpdir"

class ExportTest < Minitest::Test
  def setup
    @dir = Dir.mktmpdir("pitwall-export-")
    @file = File.join(@dir, "shop.pit")
    File.binwrite(@file, ShopRecording.bytes)
  end

  def teardown = FileUtils.rm_rf(@dir)

  def test_collapsed
    status, out, err = export("--to", "collapsed", "--out", "-", "--weight", "cpu")
    assert_equal [0, ""], [status, err]
    assert_includes out, "Object#main;Rack::MethodOverride#call;Shop::CheckoutController#create;" \
                         "Shop::Fib.fib;Shop::Fib.fib 19000000\n"
    assert_equal 991_000_000, out.lines.sum { |line| line[/\d+$/].to_i }
  end

  def test_speedscope_to_a_file
    out = File.join(@dir, "out.json")
    assert_equal [0, "", ""], export("--to", "speedscope", "--out", out)
    assert_equal 2, JSON.parse(File.read(out))["profiles"].size
  end

  def test_selection_and_redaction
    _, out, = export("--to", "collapsed", "--out", "-", "--thread", "2", "--blackbox", "Worker#run")
    assert_equal ["Kernel#sleep 1413000000", "Worker#run 60000000"], out.lines(chomp: true).sort
    refute_includes export("--to", "speedscope", "--out", "-", "--redact")[1], "/srv"
  end

  def test_mistakes_are_one_line_and_a_status
    {
      ["--to", "speedscope"] => [2, "--out FILE"], ["--out", "x"] => [2, "--to collapsed"],
      ["--to", "dtrace", "--out", "x"] => [2, "--to dtrace"],
      ["--to", "speedscope", "--out", "-", "--gc", "apart"] => [2, "--to collapsed"],
      ["--to", "collapsed", "--out", "-", "--thread", "x"] => [2, "no thread"],
      ["--to", "collapsed", "--out", @dir] => [2, "cannot write --out"]
    }.each do |options, (status, message)|
      got, _, err = export(*options)
      assert_equal [status, 1], [got, err.lines.size], err
      assert_includes err, message
    end
  end

  def test_the_weight_is_that_of_the_report_and_an_empty_tree_is_refused
    objects = File.join(@dir, "objects.pit")
    built = RecordingBuilder.build(mode: "none", collectors: ["allocations"]) do |segment|
      segment.site(5, stack: [["Shop#sum", "/app/shop.rb", 3, 4]], counters: [7] + [0] * 9)
    end
    File.binwrite(objects, built)
    assert_equal [0, "Shop#sum 7\n", ""], export_of(objects, "--out", "-", "--to", "collapsed")
    assert_match(/^events: Objects Bytes\n.*^3 7 0$/m, export_of(objects, "--out", "-", "--to", "callgrind")[1])
    mixed = File.join(@dir, "mixed.pit")
    File.binwrite(mixed, RecordingBuilder.build(collectors: ["allocations"]) do |segment|
      segment.thread(1, "main")
      segment.row(stack: [["Shop#sum", "/app/shop.rb", 3, 4]], labels: { "r" => "b" })
      segment.site(5, stack: [["Shop#sum", "/app/shop.rb", 3, 4]], counters: [7] + [0] * 9)
    end)
    leave_out = /leave out --label, or try --weight captures, cpu, wall$/
    {
      [objects, "--weight", "wall"] =>
        /--to collapsed: nothing of the recording has any weight wall: try --weight objects/,
      [objects, "--weight", "wall", "--to", "callgrind"] =>
        /--to callgrind: nothing of the recording has any weight wall/,
      [@file, "--weight", "calls"] => /any weight calls: try --weight captures, cpu, wall/,
      [mixed, "--weight", "objects", "--label", "r=b"] =>
        /nothing of that part of the recording has any weight objects: #{leave_out}/
    }.each do |arguments, message|
      status, out, err = export_of(arguments[0], "--out", "-", "--to", "collapsed", *arguments.drop(1))
      assert_equal [2, "", 1], [status, out, err.lines.size], err
      assert_match message, err
    end
  end

  def test_pprof_and_firefox
    out = File.join(@dir, "out.pb.gz")
    assert_equal [0, "", ""], export("--to", "pprof", "--out", out)
    assert_equal "\x1f\x8b".b, File.binread(out, 2)
    assert_equal [0, "", ""], export("--to", "firefox", "--out", out)
    profile = JSON.parse(File.read(out))
    assert_equal 2, profile["threads"].size
    refute_includes export("--to", "firefox", "--out", "-", "--redact")[1], "/srv"
    {
      ["--to", "pprof", "--weight", "objects"] => "it has captures, cpu, wall",
      ["--to", "firefox", "--weight", "objects"] => "no time line",
      ["--to", "pprof", "--gc", "apart"] => "--to collapsed",
      ["--to", "firefox", "--gc", "caller"] => "--gc doesn't go with",
      ["--to", "firefox", "--blackbox", "nothing"] => "--blackbox: no method"
    }.each do |options, message|
      got, _, err = export(*options, "--out", "-")
      assert_equal [2, 1], [got, err.lines.size], err
      assert_includes err, message
    end
  end

  # A new format says what it takes and nothing else: whether it folds, draws a time line, or neither.
  class Folding < Pitwall::Show::Export::Format
    def self.folds? = true

    def initialize(report)
      super()
      @report = report
    end

    def write(out) = out << "#{@report.weight} #{@report.total}\n"
  end

  class Drawing < Pitwall::Show::Export::Format
    def self.timeline? = true

    def initialize(segments, weight = :wall, selection:)
      super()
      @asked = [segments.size, weight, selection.state].inspect
    end

    def write(out) = out << @asked << "\n"
  end

  class Holding < Pitwall::Show::Export::Format
    def initialize(segments, weight = :none, selection:)
      super()
      @asked = [segments.size, weight, selection.state].inspect
    end

    def missing = ["no colours"]
    def write(out) = out << @asked << "\n"
  end

  def test_a_format_is_asked_what_it_takes
    traced, objects = other_recordings
    blackbox = { %w[--blackbox nothing] => /--blackbox: no method "nothing"/ }
    no_line = "--to tiny draws samples over time, and"
    {
      Folding => { [] => /\Awall \d+\n\z/, %w[--weight cpu --gc apart --blackbox Fib] => /\Acpu \d+\n\z/,
                   ["--weight", "calls", traced] => "calls 1\n", [objects] => "objects 7\n",
                   %w[--weight gc] => /nothing of the recording has any weight gc: try --weight captures, cpu, wall$/ },
      Drawing => { [] => "[1, :wall, nil]\n", %w[--weight captures --state gvl] => "[1, :captures, 1]\n",
                   %w[--weight objects] => /--weight objects has no time line for --to tiny/,
                   %w[--gc apart] => /--gc doesn't go with --to tiny/, **blackbox,
                   [traced] => /#{no_line} a trace has none/, [objects] => /#{no_line} the recording has none/ },
      Holding => { [] => "[1, :none, nil]\n", %w[--weight cpu] => "[1, :cpu, nil]\n",
                   ["--weight", "calls", traced] => "[1, :calls, nil]\n",
                   ["--weight", "objects", objects] => "[1, :objects, nil]\n",
                   %w[--weight objects] =>
                   /--weight objects: not in this recording; it has captures, cpu, wall, and --to tiny holds them all$/,
                   **blackbox, ["--thread", "main", objects] => /no thread/ }
    }.each do |made, cases|
      cases.each do |options, expected|
        recording = @file unless options.last&.end_with?(".pit")
        status, out, err = with_format("tiny", made) { export_of(recording, *options, "--to", "tiny", "--out", "-") }
        unless expected.is_a?(Regexp) && out.empty?
          note = made == Holding ? "pitwall: --to tiny: no colours\n" : ""
          next assert_equal([0, true, note], [status, expected === out, err], "#{made} #{options}: #{out}#{err}")
        end

        assert_equal [2, 1], [status, err.lines.size], "#{made} #{options}: #{err}"
        assert_match expected, err
      end
    end
  end

  private

  # One of a trace, one of objects alone.
  def other_recordings
    traced, objects = %w[traced objects].map { |name| File.join(@dir, "#{name}.pit") }
    shop = [["Shop#sum", "/app/shop.rb", 3, 4]]
    calls = RecordingBuilder.build(mode: "none") do |segment|
      segment.traced
      segment.calls(stack: shop, wall: 60, cpu: 50)
    end
    File.binwrite(traced, calls)
    sites = RecordingBuilder.build(mode: "none", collectors: ["allocations"]) do |segment|
      segment.site(5, stack: shop, counters: [7] + [0] * 9)
    end
    File.binwrite(objects, sites)
    [traced, objects]
  end

  def with_format(name, made, &block)
    formats = Pitwall::Show::Export
    known = formats.method(:[])
    with_made = ->(asked) { asked == name ? made : known.call(asked) }
    formats.stub(:names, [*formats.names, name]) { formats.stub(:[], with_made, &block) }
  end

  def export(*options) = export_of(@file, *options)

  def export_of(file, *options)
    out = StringIO.new
    err = StringIO.new
    [Pitwall::CLI.run(["export", *file, *options], out: out, err: err), out.string, err.string]
  end
end
