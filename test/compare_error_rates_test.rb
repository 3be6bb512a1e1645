# frozen_string_literal: true

require_relative "test_helper"
require_relative "../benchmarks/support/error_log"
require_relative "../benchmarks/support/resampling"
require_relative "../benchmarks/support/verdicts"
require "tempfile"

# How often `pitwall compare` is wrong: the procedure that runs live, fed over and over with processes that really were measured
# (benchmarks/traces, on an idle machine and on loaded ones), with a difference of known size multiplied into one side. The seeds are
# fixed: it passes or fails on a trace, not by luck. PITWALL_REPLICATIONS=10 takes ten times as many.
module CompareErrorRatesTest
  TRACES = Benchmarks::Trace.all
  TIMES = Integer(ENV.fetch("PITWALL_REPLICATIONS", "1"))
  # Seconds that a user gives each case.
  BUDGETS = { "method_1ms" => 15, "command_150ms" => 30, "gc_5ms" => 60 }.freeze
  Rate = Benchmarks::ErrorLog::Rate

  module Comparisons
    # { [trace, settings] => outcomes }: tests that ask the same question of a trace share the answers.
    KNOWN = {}

    def outcomes(trace, count, planted: 0.0, seconds: BUDGETS.fetch(trace.planted), **settings)
      KNOWN[[trace.name, count, planted, seconds, settings]] ||=
        Benchmarks::Resampling.new(trace, seconds: seconds, planted: planted, **settings).outcomes(count * TIMES)
    end

    def rate(outcomes) = Rate.new(outcomes.count { |outcome| yield outcome }, outcomes.size)
  end

  class Traces < Minitest::Test
    include Comparisons

    def test_there_are_traces_of_every_case
      assert_empty BUDGETS.keys - TRACES.map(&:planted)
    end

    def test_they_are_long_enough_and_small
      TRACES.each { |trace| assert_operator trace.pairs.size, :>=, 200, trace.name }
      assert_operator Dir[File.expand_path("../benchmarks/traces/*", __dir__)].sum { |file| File.size(file) }, :<, 400_000
    end

    # What is not real about a resampled process: its batches are five, with the median and the trend of the real ones.
    def test_a_process_keeps_its_median
      trace = Benchmarks::Trace.new({ "case" => "x", "load" => "y", "batches" => 30, "block_ns" => 1 }, [])

      assert_equal [90.0, 90.0, 100.0, 120.0, 120.0], trace.sample([90, 100, 120, 105, 0], "A", 0, 0)["wall"]
      assert_equal [102.0] * 5, trace.sample([100, 100, 100, 100, 0], "B", 0, 1, 1.02)["wall"]
      assert_equal [:unsteady], trace.sample([100, 100, 100, 100, 1], "B", 0, 1).notes
    end
  end

  # What the live runs (benchmarks/compare/error_rates.rb) are added up with.
  class Log < Minitest::Test
    def test_rates_have_the_interval_of_clopper_and_pearson
      { [0, 60] => [0.0, 0.0596], [3, 30] => [0.0211, 0.2653], [20, 20] => [0.8316, 1.0] }.each do |counts, bounds|
        Rate.new(*counts).interval.zip(bounds) { |found, expected| assert_in_delta expected, found, 0.0001 }
      end
    end

    def test_runs_add_up_and_a_cut_line_is_none
      Tempfile.create("log") do |file|
        log = Benchmarks::ErrorLog.new(file.path)
        [["slower", 1.015], ["same", 1.025]].each do |verdict, high|
          log.append(tool: "pitwall", case: "x", planted: 0.02, truth: 0.02, verdict: verdict, seconds: 1, ratio: { low: 1.01, high: high })
        end
        File.write(file.path, "{\"tool\":\"pitw", mode: "a")
        log.append(tool: "other")
        tally = log.tally("pitwall", "x", 0.02)

        assert_equal 3, log.lines.size
        assert_equal [2, "1 of 2 (1.3–98.7%)", 1], [tally.runs, tally.rate("slower").to_s, tally.covered.hits]
      end
    end

    def test_what_benchmark_ips_says
      said = "Warming up…\n A 500.0 i/s\nComparison:\n                   %s:      500.2 i/s\n                   %s:      489.7 i/s - %s\n\n"

      assert_equal "slower", Benchmarks::Verdicts::BenchmarkIps.read(format(said, "A", "B", "1.02x  slower"))[:verdict]
      assert_equal "faster", Benchmarks::Verdicts::BenchmarkIps.read(format(said, "B", "A", "1.02x  (± 0.00) slower"))[:verdict]
      assert_equal "same", Benchmarks::Verdicts::BenchmarkIps.read(format(said, "A", "B", "same-ish: difference falls within error"))[:verdict]
    end

    def test_what_hyperfine_says
      said = [0.1, 0.102].map { |mean| { "mean" => mean, "stddev" => 0.001 } }

      assert_equal ["slower", "B takes 1.020 ± 0.014 times as long"], Benchmarks::Verdicts::Hyperfine.read(said).values_at(:verdict, :said)
      assert_equal "same", Benchmarks::Verdicts::Hyperfine.read(said.map { |result| result.merge("stddev" => 0.01) })[:verdict]
    end
  end

  class FalseAlarms < Minitest::Test
    include Comparisons

    EACH = 120

    # At α = 1% one in a hundred is expected; the limit leaves room for what no test of pairs can know.
    def test_identical_sides_are_called_different_in_at_most_two_of_a_hundred
      rates = TRACES.to_h { |trace| [trace.name, rate(outcomes(trace, EACH)) { |outcome| %i[slower faster].include?(outcome.verdict) }] }
      all = Rate.new(rates.values.sum(&:hits), rates.values.sum(&:runs))

      assert_operator all.share, :<=, 0.02, "all traces: #{all}; #{rates}"
      rates.each { |name, found| assert_operator found.interval.first, :<=, 0.02, "#{name}: #{found}" }
    end
  end

  class Power < Minitest::Test
    include Comparisons

    # Least shares of planted differences that are found on an idle machine. A claim about one is tested when it has been recorded
    # (benchmarks/README.md); on a loaded one nothing is promised but that it isn't wrong.
    [["method_1ms", 0.02, 15, 0.99, 300], ["command_150ms", 0.02, 30, 0.95, 200], ["gc_5ms", 0.02, 60, 0.9, 200], ["method_1ms", 0.01, 30, 0.85, 200]].each do |name, planted, seconds, least, count|
      trace = TRACES.find { |candidate| candidate.planted == name && candidate.load == "idle" } or next

      define_method(:"test_#{(planted * 100).round}_percent_of_#{name}_in_#{seconds}_seconds") do
        found = rate(outcomes(trace, count, planted: planted, seconds: seconds), &:found?)

        assert_operator found.share, :>=, least, "#{trace.name}, #{trace.pairs_in(seconds)} pairs: #{found}"
      end
    end

    # Twice the margin: whatever the load, it may remain undecided, but it is not the same, and never the other way round.
    def test_two_percent_are_never_called_the_same
      TRACES.each do |trace|
        found = outcomes(trace, 60, planted: 0.02)

        assert_empty found.map(&:verdict) & %i[same], trace.name
        assert_operator rate(found) { |outcome| outcome.verdict == :faster }.share, :<=, 0.02, trace.name
      end
    end

  end

  class Coverage < Minitest::Test
    include Comparisons

    # With its stops at looks, its verdicts and all: what is printed at the end holds the truth as often as it says.
    def test_intervals_of_99_percent = assert_coverage(0.01, 0.97..1.0)
    def test_intervals_of_95_percent = assert_coverage(0.05, 0.93..0.97)

    private

    # The check for a steady state, which would only refuse a verdict, is left out.
    def assert_coverage(alpha, range)
      runs = TRACES.flat_map { |trace| outcomes(trace, 80, alpha: alpha, whole: false) + outcomes(trace, 80, alpha: alpha, planted: 0.02, whole: false) }
      found = rate(runs, &:covered?)

      assert_includes range, found.share, found.to_s
    end
  end
end
