# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/shop_recording"
require "pitwall/cli"
require "json"
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
    assert_includes out, "Object#main;Rack::MethodOverride#call;Shop::CheckoutController#create;Shop::Fib.fib;Shop::Fib.fib 19000000\n"
    assert_equal 991_000_000, out.lines.sum { |line| line[/\d+$/].to_i }
  end

  def test_speedscope_to_a_file
    out = File.join(@dir, "out.json")
    assert_equal [0, "", ""], export("--to", "speedscope", "--out", out)
    assert_equal 2, JSON.parse(File.read(out))["profiles"].size
  end

  def test_selection_and_redaction
    _, out, = export("--to", "collapsed", "--out", "-", "--thread", "2", "--blackbox", "Worker#run")
    assert_equal ["Thread#sleep 1413000000", "Worker#run 60000000"], out.lines(chomp: true).sort
    refute_includes export("--to", "speedscope", "--out", "-", "--redact")[1], "/srv"
  end

  def test_mistakes_are_one_line_and_a_status
    { ["--to", "speedscope"] => [2, "--out FILE"], ["--out", "x"] => [2, "--to collapsed"], ["--to", "pprof", "--out", "x"] => [2, "--to pprof"],
      ["--to", "speedscope", "--out", "-", "--gc", "apart"] => [2, "--to collapsed"], ["--to", "collapsed", "--out", "-", "--thread", "x"] => [2, "no thread"],
      ["--to", "collapsed", "--out", @dir] => [2, "cannot write --out"] }.each do |options, (status, message)|
      got, _, err = export(*options)
      assert_equal [status, 1], [got, err.lines.size], err
      assert_includes err, message
    end
  end

  private

  def export(*options)
    out = StringIO.new
    err = StringIO.new
    [Pitwall::CLI.run(["export", @file, *options], out: out, err: err), out.string, err.string]
  end
end
