# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_recording"
require_relative "../support/shop_recording"
require "fileutils"
require "json"
require "pitwall/cli"
require "stringio"
require "tmpdir"

# --time, --focus, --hide, --only and saved sets, as one types them.
class FiltersCommandTest < Minitest::Test
  def setup
    @dir = File.realpath(Dir.mktmpdir)
    @file = File.join(@dir, "shop.pit")
    File.binwrite(@file, ShopRecording.bytes)
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def test_focus_keeps_whole_stacks_and_says_of_how_much
    out = report("--focus", "Fib.fib")
    assert_match(/^focus Fib\.fib: 11\.3% of the whole$/, out)
    assert_match(/0\.0%\s+0 s\s+100%\s+170 ms\s+0 s  Object#main/, out)
    refute_match(/BigDecimal/, out)
    assert_match(/pitwall report \S+ --focus Fib\.fib --tree/, out, "what is suggested shows the same part")
  end

  def test_focus_on_two_names_keeps_samples_of_either
    assert_equal 730_000_000, json("--focus", "Fib.fib", "--focus", "IO#read", "--idle")["total"]
  end

  def test_hide_moves_weight_to_the_caller
    found = methods("--hide", "BigDecimal#+", "--hide", "Array#each")
    refute_includes found.keys, "Array#each"
    assert_equal 700_000_000, found.fetch("block in Shop::Checkout::Cart#total_with_discounts_and_taxes")["self"]
    assert_match(/^hide BigDecimal#\+, Array#each$/, report("--hide", "BigDecimal#+", "--hide", "Array#each"))
  end

  # Native functions are names only where they are shown.
  def test_native_frames_in_reports_exports_and_comparisons
    boot = File.join(@dir, "boot.pit")
    File.binwrite(boot, NativeRecording.bytes)
    run = lambda do |*words|
      out, err = StringIO.new("".b), StringIO.new
      [Pitwall::CLI.run(words, out: out, err: err), out.string, err.string]
    end
    folded = /\A\S+:\ --(?:hide|blackbox).*:\ no\ method\ "rb_feature_p"\ in\ the\ recording.*;
              \ native\ frames\ are\ folded,\ --native\ shows\ them\n\z/x
    [["report", boot, "--hide"], ["export", boot, "--to", "pprof", "--out", "-", "--hide"],
     ["compare", boot, boot, "--hide"],
     ["compare", boot, boot, "--blackbox"]].each do |words|
      status, _, err = run.call(*words, "rb_feature_p")
      assert_equal [2, 1], [status, err.lines.size], err
      assert_match folded, err
    end
    compared = lambda do |*words|
      found = JSON.parse(run.call("compare", boot, boot, "--format", "json", *words)[1])
      found["why"].first["methods"].map { |row| row["name"] }
    end
    refute_includes compared.call, "rb_realpath_internal"
    assert_includes compared.call("--native"), "rb_realpath_internal"
    assert_includes compared.call("--native", "--blackbox", "rb_feature_p"), "rb_feature_p"
    refute_includes compared.call("--native", "--blackbox", "rb_feature_p"), "garbage_collect"
  end

  def test_time_of_one_process
    pid = JSON.parse(report("--format", "json")).dig("recordings", 0, "pid") ||
          Pitwall::Record.read(@file).segments.first.header.pid
    both = json("--process", pid.to_s, "--time", "0.2s..0.9s")
    assert_equal json("--time", "0.2s..0.9s")["total"], both["total"]
    refuse(2, /no process 1 in the recording/, "report", @file, "--process", "1", "--time", "0.2s..0.9s")
  end

  def test_only_takes_an_origin_or_a_gem
    %w[gems rack].each do |whose|
      found = methods("--only", whose, "--weight", "cpu")
      assert_equal ["(marking)", "(other code)", "Rack::MethodOverride#call"], found.keys.sort
    end
    expected = ["(marking)", "(other code)", "Array#each", "BigDecimal#+", "IO#read"]
    assert_equal expected, methods("--only", "stdlib").keys.sort
    assert_equal json("--only-mine")["methods"], json("--only", "app")["methods"]
  end

  def test_time_counts_from_the_start
    found = json("--time", "0.2s..0.9s")
    assert_equal 700_000_000, found["total"]
    expected = { "time" => { "from_ns" => 200_000_000, "to_ns" => 900_000_000 }, "kept" => 700_000_000,
                 "of" => 1_501_000_000 }
    assert_equal expected, found["filters"]
    parts = %w[..500ms 500000us..0.02m 1.2s..].map { |range| json("--time", range)["total"] }
    assert_equal json["total"], parts.sum
    refute json.key?("filters")
  end

  def test_what_filters_leave_is_exported
    { "collapsed" => [], "pprof" => [], "callgrind" => [], "speedscope" => [], "firefox" => [] }.each_key do |format|
      out = File.join(@dir, format)
      whole = File.join(@dir, "whole")
      filters = ["--time", "0.2s..", "--focus", "Fib.fib", "--hide", "Rack::MethodOverride#call"]
      assert_equal 0, run_command("export", @file, "--to", format, "--out", out, *filters)[0]
      assert_equal 0, run_command("export", @file, "--to", format, "--out", whole)[0]
      assert_operator File.size(out), :<, File.size(whole)
      next if format == "pprof"

      text = File.read(out)
      assert_includes text, "Shop::Fib.fib"
      refute_includes text, "Rack::MethodOverride#call" if format == "collapsed"
    end
    assert_equal 230, speedscope_total / 1_000_000
  end

  def test_comparisons_are_of_what_filters_leave
    _, out, err = run_command("compare", @file, copy, "--focus", "Fib.fib", "--only", "app", "--time", "..5s")
    assert_equal "", err
    assert_match(/^compared: time \.\.5s, focus Fib\.fib, only app$/, out)
    refute_match(/BigDecimal/, out)
    object = JSON.parse(run_command("compare", @file, copy, "--hide", "Fib.fib", "--format", "json")[1])
    assert_equal({ "hide" => ["Fib.fib"] }, object["filters"])
    refuse(2, /--focus: is for two recordings/, "compare", "-e", "1", "-e", "2", "--focus", "x")
    refuse(2, /\A\S+: --focus: no method "nix" in the recording/, "compare", @file, copy, "--focus", "nix")
    refuse(2, /shop\.pit: --focus Fib\.fib: no sample of the part/, "compare", @file, copy, "--focus", "Fib.fib",
           "--time", "..300ms")
  end

  def test_sets_of_names
    settings("carry: [x]\nblackbox:\n  framework: [rails, rack]\n  sums: 'Array#each'\n")
    out = report("--blackbox", "@framework", "--hide", "@sums")
    assert_match(/^folded below @framework$/, out)
    assert_match(/^hide @sums$/, out)
    assert_match(/100%\s+1\.00 s.*Rack::MethodOverride#call/, out)
    unknown = /\A\S+:\ --blackbox\ @framwork:\ no\ such\ set\ in\ \S+\.pitwall\.yml;
               \ it\ has\ @framework,\ @sums;\ did\ you\ mean\ @framework\?\n/x
    refuse(2, unknown, "report", @file, "--blackbox", "@framwork")
    settings("blackbox: {other: [Nix#no, rails]}")
    unknown = /--focus: no method of the set @other in the recording; it is Nix#no, rails/
    refuse(2, unknown, "report", @file, "--focus", "@other")
  end

  def test_wrong_settings_are_named_with_file_and_key
    {
      "blackbox: [rails]" => /\.pitwall\.yml:1: blackbox: takes sets of names/,
      "carry: 1\nblackbox:\n  b: [x]\n  a: [1]" => /\.pitwall\.yml:4: blackbox: a: takes a list of names/,
      "blackbox: {a: }" => /\.pitwall\.yml:1: blackbox: a: takes a list of names/,
      "blackbox: {a: [" => /\.pitwall\.yml:\d: /,
      "blackbox: {a: [!ruby/object:Object {}]}" => /\.pitwall\.yml: Tried to load unspecified class: Object/,
      "a: 1" => /no such set in .*\.pitwall\.yml; there is none/
    }.each do |text, message|
      settings(text)
      refuse(2, message, "report", @file, "--blackbox", "@a")
    end
    FileUtils.rm(File.join(@dir, ".pitwall.yml"))
    without = /no such set in \.pitwall\.yml; write it as blackbox: {a: \[NAME, NAME\]}/
    refuse(2, without, "report", @file, "--hide", "@a")
  end

  def test_what_is_wrong_is_one_line
    {
      ["--focus", "Shop::Fib.fibb"] => /--focus: no method "Shop::Fib\.fibb" .*; did you mean Shop::Fib\.fib\?/,
      ["--hide", "Nix#no"] => /--hide: no method "Nix#no"/,
      ["--only", "rak"] => /--only rak: no gem of that name; did you mean rack\?; the recording has rack/,
      ["--only", "native"] => /--only native: the recording has no such frame/,
      ["--time", "5s.."] => /--time 5s\.\.: begins after the recording's end: it is 2\.0 s long/,
      ["--time", "3s..2s"] => /ends before it begins/,
      ["--time", ".."] => /write it as FROM\.\.TO/,
      ["--time", "2..3"] => /--time 2: not a time/,
      ["--time", "..300ms", "--focus", "Fib.fib"] => /--focus Fib\.fib: no sample of the part asked for has it/,
      ["--time", "..300ms", "--focus", "Fib.fib", "--view", "threads"] => /--focus Fib\.fib: no sample of the part/,
      ["--blackbox", "Shop::Fib.fibb"] => /--blackbox: no method .*; did you mean Shop::Fib\.fib\?/,
      ["--time", "1.9s..", "--thread", "main"] => /--time 1\.9s\.\.: nothing was sampled in that time/,
      ["--time", "1s..", "--weight", "objects"] => /--time: objects are sums without times/,
      ["--time", "1s..", "--view", "tests"] => /--time: the view of tests has no times/,
      ["--hide", "Array#each", "--view", "requests"] => /--hide: the view of requests has no stacks/,
      ["--focus", "Array#each", "--view", "gc"] => /--focus: the view of gc has no stacks/
    }.each { |options, message| refuse(2, message, "report", @file, *options) }
    refuse(2, /--focus Fib\.fib: no sample/, "export", @file, "--to", "collapsed", "--out", "-", "--focus", "Fib.fib",
           "--time", "..300ms")
  end

  def test_a_trace_has_no_times
    bytes = RecordingBuilder.build(mode: "none") do |segment|
      segment.traced
      segment.calls stack: [ShopRecording::MAIN, ShopRecording::TOTAL], calls: 3, wall: 90
      segment.calls stack: [ShopRecording::MAIN], calls: 1, wall: 10
    end
    File.binwrite(@file, bytes)
    refuse(2, /--time: the view of calls has no times/, "report", @file, "--time", "1s..")
    refuse(2, /--time 1s\.\.: nothing in the recording has a time/, "report", @file, "--time", "1s..", "--view", "flat")
    kept = report("--focus", "total_with_discounts_and_taxes")
    assert_match(/focus total_with_discounts_and_taxes: 90\.0% of the whole/, kept)
  end

  private

  def report(*options) = run_command("report", @file, *options)[1]

  def json(*options) = JSON.parse(report("--format", "json", *options))

  def methods(*options)
    json(*options)["methods"].select { |row| row["total"].positive? }.to_h { |row| [row["name"], row] }
  end

  def copy
    File.join(@dir, "copy.pit").tap { |path| FileUtils.cp(@file, path) }
  end

  def settings(text) = File.write(File.join(@dir, ".pitwall.yml"), text)

  def speedscope_total
    JSON.parse(File.read(File.join(@dir, "speedscope")))["profiles"].sum { |profile| profile["weights"].sum }
  end

  def run_command(*arguments)
    out, err = StringIO.new, StringIO.new
    status = Dir.chdir(@dir) { Pitwall::CLI.run(arguments, out: out, err: err) }
    [status, out.string, err.string]
  end

  def refuse(status, message, *arguments)
    got, _, err = run_command(*arguments)
    assert_equal status, got, err
    assert_equal 1, err.lines.size, err
    assert_match message, err
  end
end
