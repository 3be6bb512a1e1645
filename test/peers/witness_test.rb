# frozen_string_literal: true

require_relative "../test_helper"
require "tmpdir"
require_relative "witness/run"
require_relative "witness/comparison"
require_relative "witness/exceptions"

# The script that compares Ruby's own tests, with a planted suite: one that differs where it is recorded.
class WitnessTest < Minitest::Test
  # Tells what the reporter tells. ARGV: the tests to run, none for all.
  SUITE = <<~'RUBY'
    def recorded? = ENV.key?("PITWALL_PARTS")
    def tell(*words) = File.open(ENV["WITNESS_REPORT"], "a") { |file| file.syswrite("#{words.join("\t")}\n") }
    # Fails in these runs of the test, counted from 1.
    def turn(name, *failing)
      File.write(name, ".", mode: "a")
      failing.include?(File.size(name)) ? "fail" : "pass"
    end
    tests = {
      "T#agrees" => -> { "pass" },
      "T#skips" => -> { "skip" },
      "T#differs" => -> { recorded? ? "fail" : "pass" },
      "T#unsteady" => -> { File.write("runs", ".", mode: "a"); File.size("runs").odd? ? "pass" : "error" },
      "T#chance" => -> { turn("chance", 2, 7, 11) },
      "T#seldom" => -> { recorded? ? turn("seldom", 1, 2, 6) : "pass" },
      "T#seldom_once" => -> { recorded? ? turn("seldom_once", 1, 2) : "pass" },
      "T#steady_alone" => -> { recorded? && ARGV.empty? && !File.exist?("once") ? (File.write("once", ""); "fail") : "pass" },
      "T#ends_it" => -> { recorded? && ENV["WITNESS_ENDS"] ? Process.kill(:KILL, $$) : "pass" }
    }
    spawn("sleep", "1000", pgroup: true) if ENV["WITNESS_LEAVES"]
    sleep if ENV["WITNESS_HANGS"]
    tests.each do |name, test|
      next unless ARGV.empty? || ARGV.include?(name)

      tell("start", name)
      tell(test.call, name, "about #{name}")
    end
  RUBY

  def setup
    @dir = Dir.mktmpdir("witness-test-")
    File.write(File.join(@dir, "suite.rb"), SUITE)
  end

  def teardown = FileUtils.rm_rf(@dir)

  def run_suite(way, tests = nil, env: {}, limit: 60)
    Witness::Run.new([RbConfig.ruby, "--disable-gems", "suite.rb", *tests], chdir: @dir, limit: limit, env: env).call(way)
  end

  def differences(way, env: {})
    plain = run_suite("plain", env: env)
    comparison = Witness::Comparison.new(plain, more: 2) { |which, tests| run_suite(which, tests, env: env) }
    comparison.differences(way, run_suite(way, env: env))
  end

  def test_tells_differences_from_chance
    found = differences("safepoint").to_h { |difference| [difference.test, difference] }
    assert_equal %w[chance differs seldom seldom_once steady_alone unsteady].map { |name| "T##{name}" }, found.keys.sort
    assert_equal ["pass", "fail", "differs", "about T#differs"], found["T#differs"].to_h.values_at(:plain, :recorded, :verdict, :message)
    assert_equal "not repeated", found["T#steady_alone"].verdict
    assert_equal "unsteady", found["T#unsteady"].verdict
    verdicts = %w[T#chance T#seldom T#seldom_once].map { |name| found[name].verdict }
    assert_equal ["unsteady", "differs", "not repeated"], verdicts
    assert_equal [false, true], %w[T#steady_alone T#differs].map { |name| found[name].ours? }
  end

  # Tells whether the accelerator is on, also in a child with an option of its own, and how full its pack is.
  BOOT_SUITE = <<~'RUBY'
    require "rbconfig"
    packs = Dir["#{ENV["PITWALL_BOOT_CACHE"]}/*.pack"].size
    child = `#{RbConfig.ruby} --disable-gems -e "print defined?(Pitwall::Fastboot).inspect"`
    File.open(ENV["WITNESS_REPORT"], "a") do |file|
      file.syswrite("pass\tT#on\t\n") if defined?(Pitwall::Fastboot)
      file.syswrite("pass\tT#child #{child}\t\npass\tT#packs #{packs}\t\n")
    end
    File.write("part.rb", "1")
    load "./part.rb"
  RUBY

  def test_the_accelerator_is_on_in_all_processes_and_its_pack_is_cold_or_warm
    File.write(File.join(@dir, "suite.rb"), BOOT_SUITE)
    names = %w[plain boot-cold boot-warm].to_h { |way| [way, run_suite(way).tests.keys.grep(/T#/)] }
    assert_equal ["T#child nil", "T#packs 0"], names["plain"]
    assert_equal ["T#on", "T#child constant", "T#packs 0"], names["boot-cold"].map { |name| name.tr('"', "") }
    assert_equal ["T#on", "T#child constant", "T#packs 1"], names["boot-warm"].map { |name| name.tr('"', "") }
  end

  def test_a_crash_counts_at_once
    found = differences("safepoint", env: { "WITNESS_ENDS" => "1" }).to_h { |difference| [difference.test, difference] }
    assert_equal ["unfinished", "differs"], found["T#ends_it"].to_h.values_at(:recorded, :verdict)
    assert_equal ["SIGKILL", "differs"], found[Witness::Outcomes::ENDING].to_h.values_at(:recorded, :verdict)
  end

  def test_nothing_is_left_of_a_run_that_does_not_end
    outcomes = run_suite("plain", env: { "WITNESS_HANGS" => "1", "WITNESS_LEAVES" => "1" }, limit: 1)
    assert_equal "time limit", outcomes[Witness::Outcomes::ENDING]
    left = Dir["/proc/[0-9]*/cwd"].select { |link| File.readlink(link) == File.realpath(@dir) rescue false }
    assert_empty left
  end

  def test_crashes_that_children_report_are_counted
    outcomes = Witness::Outcomes.new(report: "start\tT#a\t\npass\tT#a\t\n", ending: "exit", output: "x\n-e:1: [BUG] Segmentation fault\n", seconds: 1.0)
    assert_equal ["1", "pass", 1], [outcomes[Witness::Outcomes::CRASHES], outcomes["T#a"], outcomes.size]
  end

  def test_exceptions_are_known_by_test_and_way
    exceptions = Witness::Exceptions.new([Witness::Exceptions::Known.new(test: "T#a", ways: ["trace"], reason: "why")])
    assert_equal ["why", nil, nil], [%w[T#a trace], %w[T#a signal], %w[T#b trace]].map { |test, way| exceptions.reason(Witness::Difference.new(test: test, way: way)) }
  end

  def test_an_exception_may_be_of_some_rubies
    exceptions = Witness::Exceptions.new([Witness::Exceptions::Known.new(test: "T#a", ways: ["signal"], rubies: ["3.1"], reason: "why")])
    difference = Witness::Difference.new(test: "T#a", way: "signal")
    assert_equal ["why", nil], %w[3.1.2 3.10.0].map { |ruby| exceptions.reason(difference, ruby: ruby) }
  end

  def test_the_documentation_names_each_exception
    text = File.read(File.join(Checkout::ROOT, "doc/witnesses.md")).tr("\n", " ")
    Witness::Exceptions.read.all.each do |known|
      assert_includes text, known.test
      assert_empty known.ways - Witness::WAYS.keys
      refute_empty known.reason
    end
  end
end
