# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "json"
require "pitwall/cli"

# `pitwall trace` from end to end: what it shows of a program whose calls are known.
class TraceCommandTest < Minitest::Test
  include CommandLine

  PROGRAM = <<~'RUBY'
    class Shop
      def sum(n) = n.times.map { |i| price(i) }.sum
      def price(n) = n.zero? ? 1 : tax(n) + n
      def tax(n) = n / 5
      def deep(n) = n.zero? ? 0 : deep(n - 1)
    end
    shop = Shop.new
    shop.sum(100)
    shop.deep(20)
    Thread.new { shop.tax(1) }.join
    puts "done"
  RUBY

  def setup
    super
    File.write(file("shop.rb"), PROGRAM)
  end

  def trace(*options, program: "shop.rb") = pitwall("trace", *options, "--", RUBY, program)
  # As a user has it, without backtraces.
  def plain(*arguments) = pitwall(*arguments, env: { "PITWALL_DEBUG" => nil })

  def json(*options)
    result = trace("--format", "json", "--out", "report.json", *options)
    assert_equal [0, "done\n"], [result.status.exitstatus, result.out], result.err
    JSON.parse(File.read(file("report.json")))
  end

  def test_the_table_has_every_call
    result = trace("--limit", "60")
    assert_equal [0, "done\n"], [result.status.exitstatus, result.out], result.err
    assert_match(/^ *self% +total +self +(wait +)?child +calls +method$/, result.err)
    assert_match(/ 100 +Shop#price +shop\.rb:3$/, result.err)
    assert_match(/calls traced · probes .*, taken off \(ns a call: ruby \d+ ±\d+, block \d+ ±\d+, c \d+ ±\d+\)/m,
                 result.err)
    assert_match(/export \S+ --to callgrind/, result.err)
    tree = pitwall("report", recordings.first, "--tree", "--threshold", "0")
    assert_match(/ 100 .*Shop#price/, tree.out)
  end

  def test_json
    report = json("--bytes")
    methods = report.fetch("methods").to_h { |method| [method.fetch("name"), method] }
    assert_equal [100, 100, 21], %w[Shop#price Shop#tax Shop#deep].map { |name| methods.fetch(name).fetch("calls") }
    methods.each_value { |method| assert_equal %w[bytes calls objects], method.keys.sort & %w[bytes calls objects] }
    assert_equal %w[name file line kind self total self_percent total_percent], methods.fetch("Shop#tax").keys.first(8)
    deep = report.fetch("calls").find { |row| row.fetch("name") == "Shop#deep" }
    assert_equal deep.fetch("total"), deep.values_at("self", "wait", "child").sum
    assert_equal 0, report.dig("trace", "lost_calls")
    assert_equal report.fetch("methods").sum { |method| method.fetch("self") }, report.fetch("total")
  end

  def test_guided_traces_under_the_heaviest_methods
    File.write(file("hot.rb"), <<~RUBY)
      def hot = 30_000.times { |i| warm(i) }
      def warm(i) = i.to_s * 3
      def cold = nil
      cold
      8.times { hot }
      puts 1
    RUBY
    result = trace("--guided", "--format", "json", "--out", "report.json", program: "hot.rb")
    assert_equal [0, "1\n"], [result.status.exitstatus, result.out], result.err
    assert_match(/\Apitwall: tracing under .*Object#(hot|warm)/, result.err)
    names = JSON.parse(File.read(file("report.json"))).fetch("methods").map { |method| method.fetch("name") }
    assert_includes names, "Object#warm"
    refute_includes names, "Object#cold"
  end

  def test_filters_that_nothing_fitted_are_named
    File.write(file("shop.rb"), PROGRAM)
    {
      %w[--only-under Shop#summ --only-under Shop#sum] =>
        ["no method Shop#summ ran (--only-under); did you mean Shop#sum?"],
      %w[--class Nope --class Shop] => ["no method of Nope ran (--class)"],
      %w[--path /nope/* --path */shop.rb] => ["no Ruby code in /nope/* ran (--path)"],
      %w[--path shop.rb] => ["no Ruby code in shop.rb ran (--path)"], %w[--path */shop.rb --class Shop] => [],
      %w[--only-under Nope#x --depth 3] =>
        ["no method Nope#x was traced, as all filters together have it (--only-under)"]
    }.each do |options, messages|
      warnings = json(*options).fetch("warnings")
      assert_equal messages, warnings.map { |warning| warning.fetch("message") }, options.inspect
    end
    result = trace("--only-under", "Nope#x")
    assert_match(/^no call was traced$.*^! no method Nope#x ran \(--only-under\)$.*^nothing was called that the /m,
                 result.err)
    assert_match(/^nothing was called that the filters let through$/, result.err)
    refute_match(/probe|not traced|^Next:/, result.err)
  end

  def test_guided_ends_as_a_sampling_run_that_failed
    File.write(file("fails.rb"), "File.write('runs', '.', mode: 'a'); warn 'mine'; exit 3")
    result = trace("--guided", "--record", "g.pit", program: "fails.rb")
    assert_one_line 3, /--guided: the sampling run .*ended with status 3: nothing was traced; see it without --guided/,
                    result
    assert_equal ".", File.read(file("runs"))
    assert_equal 9, pitwall("trace", "--guided", "--", RUBY, "-e", "Process.kill(:KILL, $$); sleep").status.termsig
    assert_one_line 4, /sampling saw no Ruby method/, plain("trace", "--guided", "--", "true")
    assert_one_line 127, /command not found/, plain("trace", "--guided", "--", "no-such-command")
    assert_empty recordings
    assert_equal [], Dir.children(file(".pitwall")) - [".gitignore"], "nothing is left of what was not recorded"
    refute File.exist?(file("g.pit"))
  end

  def test_guided_starts_nothing_again_that_was_interrupted
    ["", "trap(:INT) { exit 0 };"].each do |handler|
      File.write(file("runs"), "")
      File.write(file("long.rb"), "#{handler} File.write('runs', '.', mode: 'a'); sleep 30")
      pid = pitwall_start("trace", "--guided", "--", RUBY, "long.rb")
      eventually { File.read(file("runs")) == "." }
      Process.kill("INT", pid)
      status = wait(pid) { Process.kill("KILL", pid) }
      assert_equal 2, status.termsig, File.read(file("err"))
      assert_match(/\Apitwall: --guided: .*was stopped by SIGINT: nothing was traced\n\z/, File.read(file("err")))
      assert_equal ".", File.read(file("runs"))
    end
    assert_nothing_left
  end

  def test_guided_runs_nothing_where_the_recording_cannot_be_written
    File.write(file("shop.rb"), "File.write('started', '')")
    result = plain("trace", "--guided", "--record", "/proc/no/x.pit", "--", RUBY, "shop.rb")
    assert_one_line 2, %r{cannot write /proc/no/x\.pit}, result
    refute File.exist?(file("started"))
  end

  def test_usage_errors_start_nothing
    File.write(file("shop.rb"), "File.write('started', '')")
    [%w[--depth 0], %w[--gc never], %w[--gc-memory 1G], %w[--gc off --gc-memory much], %w[--weight bytes],
     %w[--no-cpu --weight cpu], %w[--guided --only-under A#b],
     ["--path", ""], ["--class", "A;b=c"], %w[--limit 0], %w[--apart --format markdown],
     %w[--nonsense]].each do |options|
      result = trace(*options)
      assert_equal 2, result.status.exitstatus, options.inspect
      assert_match(/\Apitwall: .*\n/, result.err)
    end
    refute File.exist?(file("started"))
  end

  def test_views_of_calls_need_a_trace
    pitwall("profile", "--quiet", "--record", "p.pit", "--", RUBY, "shop.rb")
    [%w[--weight objects], %w[--view calls]].each do |options|
      assert_equal 2, pitwall("report", "p.pit", *options).status.exitstatus
    end
    trace("--quiet", "--record", "t.pit")
    assert_equal 2, pitwall("export", "t.pit", "--to", "speedscope", "--out", "-").status.exitstatus
    collapsed = pitwall("export", "t.pit", "--to", "collapsed", "--weight", "calls", "--out", "-")
    assert_match(/;Shop#tax 99$/, collapsed.out)
  end

  def test_the_commands_own_ending_wins
    [["exit 3", 3], ["exit! 4", 4], ["raise 'x'", 1]].each do |code, status|
      assert_equal status, pitwall("trace", "--quiet", "--", RUBY, "-e", code).status.exitstatus
    end
    assert_equal 15, pitwall("trace", "--quiet", "--", RUBY, "-e", "Process.kill(:TERM, $$); sleep").status.termsig
  end
end
