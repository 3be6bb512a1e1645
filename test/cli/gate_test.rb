# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/cli/measuring/confirmed_gate"
require "pitwall/cli/support/gate"
require "pitwall/record/sample"

# What `--fail-if` understands.
class GateTest < Minitest::Test
  Gate = Pitwall::CLI::Gate
  METRICS = Pitwall::Record::METRICS.keys

  def test_limits_are_read_with_their_units
    {
      "objects > 1200" => [">", 1200.0, false], "objects>=1_200" => [">=", 1200.0, false],
      "wall > 1.5ms" => [">", 1.5e6, false], "wall < 2us" => ["<", 2000.0, false],
      "wall <= 3 s" => ["<=", 3e9, false], "bytes > 1MB" => [">", 1e6, false],
      "max_rss > 2MiB" => [">", 2 * 1024.0**2, false], "max_rss > 1GiB" => [">", 1024.0**3, false],
      "objects > 2k" => [">", 2000.0, false], "wall > 2%" => [">", 1.02, true],
      "objects > 0%" => [">", 1.0, true], "wall < -5%" => ["<", 0.95, true], "wall > 1.5x" => [">", 1.5, true]
    }.each do |text, expected|
      condition = parse(text).conditions.first
      assert_equal expected.first, condition.operator, text
      assert_in_delta expected[1], condition.limit, 1e-9, text
      assert_equal expected.last, condition.relative, text
    end
  end

  def test_several_conditions_and_verdicts
    gate = parse("slower, objects > 0% or wall > 2ms")
    assert_equal ["slower", "objects > 0%", "wall > 2ms"], gate.conditions.map(&:text)
    assert_equal(["objects > 0%"], gate.failed { |condition| condition.metric == "objects" }.map(&:text))
    assert_equal(gate.conditions, gate.failed { true })
    assert_predicate parse("undecided"), :relative?
    assert_predicate parse("wall > 2%"), :relative?
    refute_predicate parse("wall > 2ms, objects > 1"), :relative?
  end

  # Proven slower, the limit not ruled out, and nearer to it than to nothing.
  def test_slower_by_a_share
    gate = parse("slower by 3%, objects > 0%")
    assert_predicate gate, :relative_only?
    refute_predicate parse("slower by 3%, wall > 2ms"), :relative_only?
    limit = gate.conditions.first
    { [:slower, 1.03, 1.01, 1.05] => true, [:slower, 1.2, 1.1, 1.3] => true, [:undecided, 1.03, 0.99, 1.07] => false,
      [:slower, 1.02, 1.015, 1.025] => false, [:slower, 1.012, 1.001, 1.035] => false,
      [:faster, 0.9, 0.8, 0.95] => false }.each do |(verdict, *ratio), holds|
      effect = effect(verdict, estimate(*ratio))
      assert_equal holds, limit.holds_for?(effect) { flunk }, [verdict, *ratio].inspect
    end
    ["slower by 0%", "slower by x", "slower by 3"].each { |text| assert_raises(Pitwall::UsageError) { parse(text) } }
  end

  # Judges as `compare` does.
  class Judge
    include Pitwall::CLI::ConfirmedGate

    def initialize(gate) = @options = { fail_if: gate }
    def judge(report, &again) = judge_twice(report, &again)
    def estimate(_report, effect) = effect.ratio
  end

  def test_a_second_run_confirms_or_not
    slow, fine = effect(:slower, estimate(1.04, 1.02, 1.06)), effect(:same, estimate(1.0, 0.995, 1.005))
    { [slow, [slow]] => true, [slow, [fine]] => false, [slow, []] => false, [fine, nil] => false }
      .each do |(first, second), failed|
      report = Pitwall::Analyse::ComparisonReport.new(effects: [first])
      Judge.new(parse("slower by 3%")).judge(report) do |names|
        assert_equal %w[join], names
        Pitwall::Analyse::ComparisonReport.new(effects: second || flunk)
      end
      assert_equal failed, report.gate.first.failed?
    end
    counted = effect(:more, estimate(2.0, 2.0, 2.0)).tap { |each| each.metric, each.exact = "objects", true }
    report = Pitwall::Analyse::ComparisonReport.new(effects: [counted])
    Judge.new(parse("objects > 0%")).judge(report) { flunk }
    assert_predicate report.gate.first, :failed?
  end

  def effect(verdict, ratio)
    Pitwall::Analyse::Effect.new(name: "join", side: "B", base: "A", metric: "wall", verdict: verdict, ratio: ratio)
  end

  def test_what_cannot_be_read_is_refused_with_what_can
    {
      "" => /cannot read ``/, "fast" => /cannot read `fast`; write METRIC/, "wall >" => /cannot read/,
      "wall > x" => /cannot read/, "wall = 2" => /cannot read/,
      "colour > 2" => /no metric colour; there are wall, cpu/,
      "wall > 2 parsec" => /wall takes ns us µs ms s % x, not parsec/,
      "wall > 2%, nonsense" => /cannot read `nonsense`/
    }.each do |text, expected|
      error = assert_raises(Pitwall::UsageError, text) { parse(text) }
      assert_match expected, error.message
      assert_equal 1, error.message.lines.size
    end
  end

  # What is in doubt fails nobody's build.
  def test_the_whole_interval_must_be_beyond_the_limit
    above = parse("wall > 2%").conditions.first
    assert above.exceeded?(estimate(1.05, 1.03, 1.07))
    refute above.exceeded?(estimate(1.05, 1.01, 1.09))
    refute above.exceeded?(estimate(1.02, 1.02, 1.02))
    assert above.exceeded?(estimate(1.05, nil, nil))
    refute above.exceeded?(nil)
    refute above.exceeded?(estimate(nil, nil, nil))
    below = parse("wall < 0.9x").conditions.first
    assert below.exceeded?(estimate(0.8, 0.7, 0.85))
    refute below.exceeded?(estimate(0.8, 0.7, 0.95))
  end

  def test_a_verb_with_metrics_of_its_own
    units = { "retained" => "count", "gc_time" => "ns" }
    gate = Gate.parse("retained > 2k or gc_time > 1ms", metrics: units, alone: true)
    assert_equal [2000.0, 1e6], gate.conditions.map(&:limit)
    verdicts = gate.conditions.zip([2001, 1_500_000]).map { |condition, value| condition.verdict(value) }
    assert_equal ["retained is 2,001, limit 2k", "gc_time is 1.50 ms, limit 1ms"], verdicts
    {
      "slower" => /nothing to compare/, "retained > 5 %" => /nothing to compare/,
      "retained > 1ms" => /takes k M, not ms$/, "wall > 1" => /there are retained, gc_time$/
    }.each do |text, expected|
      error = assert_raises(Pitwall::UsageError) { Gate.parse(text, metrics: units, alone: true) }
      assert_match expected, error.message
    end
  end

  private

  def parse(text) = Gate.parse(text, metrics: METRICS)

  def estimate(point, low, high) = Pitwall::Analyse::Estimate.new(point, low, high, 0.99, 10)
end
