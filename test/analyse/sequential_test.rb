# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../oracle/statistics"
require_relative "../oracle/trial"
require "pitwall/analyse/statistics/sequential"

class SequentialTest < Minitest::Test
  include Pitwall::Analyse

  SIXTHS = (1..6).map { |number| number / 6.0 }.freeze

  def test_six_equal_looks
    expected = [6.776, 4.723, 3.803, 3.257, 2.892, 2.626]
    Sequential.boundaries(SIXTHS, alpha: 0.01).zip(expected) do |boundary, value|
      assert_in_delta value, boundary, 0.001
    end
    assert_in_delta Statistics.normal_quantile(0.975), Sequential.boundaries([1.0], alpha: 0.05, ended: true).first,
                    1e-9
  end

  PLANS = {
    "even" => [SIXTHS, 0.05], "uneven" => [[0.1, 0.4, 0.45, 0.97, 1.0], 0.1], "close" => [[0.5, 0.51, 0.52, 1.0], 0.05],
    "ended early" => [[0.2, 0.4, 0.55], 0.05], "ended at once" => [[0.1], 0.05],
    "many" => [(1..25).map { |number| number / 25.0 }, 0.1]
  }.freeze

  PLANS.each do |name, (fractions, alpha)|
    define_method("test_alarms_in_all_looks_together_are_alpha_#{name.tr(' ', '_')}") do
      boundaries = Sequential.boundaries(fractions, alpha: alpha, ended: true)
      alarms = Oracle::Statistics.alarms(fractions, boundaries, Random.new(1), 6000)
      assert_in_delta alpha, alarms, 3 * Math.sqrt(alpha * (1 - alpha) / 6000), boundaries.inspect
    end
  end

  # The alpha spent at a look does not depend on later looks.
  def test_a_look_does_not_know_what_follows
    whole = Sequential.boundaries(SIXTHS, alpha: 0.01, ended: true)
    (1..5).each do |looks|
      Sequential.boundaries(SIXTHS.first(looks), alpha: 0.01).zip(whole) { |part, all| assert_in_delta all, part, 1e-7 }
      early = Sequential.boundaries(SIXTHS.first(looks), alpha: 0.01, ended: true)
      assert_operator early.last, :<, whole[looks - 1]
      assert_operator early.last, :>=, Statistics.normal_quantile(0.995) - 1e-9
    end
  end

  def test_less_doubt_lies_farther_out
    levels = [0.2, 0.05, 0.01, 0.001, 1e-6]
    levels.map { |alpha| Sequential.boundaries(SIXTHS, alpha: alpha) }.each_cons(2) do |near, far|
      near.zip(far) { |one, other| assert_operator one, :<, other }
    end
    assert(Sequential.boundaries([0.01, 1.0], alpha: 1e-9).all?(&:finite?))
  end

  def test_looks_must_rise
    [[0.0, 1.0], [0.5, 0.5], [0.6, 0.5], [-1.0]].each do |fractions|
      assert_raises(ArgumentError) { Sequential.boundaries(fractions, alpha: 0.05) }
    end
  end

  def test_boundaries_in_terms_of_student
    assert_in_epsilon 6.2e-12, Statistics.student_cdf(-Sequential.student(-Statistics.normal_quantile(6.2e-12), 7), 7),
                      1e-9
    assert_in_delta 2.776445105197793, Sequential.student(-Statistics.normal_quantile(0.025), 4), 1e-9
  end

  def test_plans
    assert_equal [10, 20, 30, 40, 50, 60], Sequential::Plan.new(60).looks
    assert_equal [8, 10, 13, 17, 20], Sequential::Plan.new(20).looks
    assert_equal [8], Sequential::Plan.new(8).looks
    assert_equal [5], Sequential::Plan.new(5).looks
    assert_raises(ArgumentError) { Sequential::Plan.new(0) }
    (1..200).each do |pairs|
      looks = Sequential::Plan.new(pairs).looks
      assert_equal pairs, looks.last
      assert_equal looks.sort.uniq, looks
    end
  end

  def test_looks_of_a_plan
    plan = Sequential::Plan.new(20)
    assert_equal [8, 10, 13, 17, 20], (1..20).select { |pairs| plan.look(pairs) }
    assert_equal [false, true], [plan.look(8).last?, plan.look(20).last?]
    assert_equal [0.4, 0.5], plan.look(10).fractions
    assert_equal [0.4, 0.5, 0.55], plan.last_look(11).fractions
    assert_equal [0.4, 0.5], plan.last_look(10).fractions # the same data again, now for good
    assert_equal [0.4, 0.5, 0.65, 0.85, 1.05], plan.look(21).fractions.values_at(0, 1, 2, 3, 5)
    boundaries = plan.boundaries(0.01)
    assert_equal plan.looks, boundaries.keys
    assert_in_delta boundaries[13], Sequential.boundaries(plan.look(13).fractions, alpha: 0.01).last, 1e-7
    assert_operator plan.look(8).boundary(0.01, 7), :>, boundaries[8]
    assert_in_delta 3.4994832973505026, Sequential::ONLY.boundary(0.01, 7), 1e-9
  end

  def procedure(pairs = 20)
    Sequential::Procedure.new(comparison: Comparison.new, plan: Sequential::Plan.new(pairs), base: "A", sides: ["B"])
  end

  # {case => ratio} → a block of pairs whose ratios vary a little around these
  def block(number, ratios)
    ratios.flat_map do |name, ratio|
      Oracle::Trial.samples(number, 1e6 + 1000 * (number % 3), ratio * 1e6).each { |sample| sample.name = name }
    end
  end

  def test_it_decides_at_looks_and_stops_when_all_is_decided
    subject = procedure
    decisions = (0...8).map { |number| subject.add(block(number, "x" => 1.5)) }
    assert_equal [nil] * 7, decisions.first(7)
    decision = decisions.last
    assert_equal [true, [], 8], [decision.stop?, decision.open, decision.pairs]
    assert_equal [:slower], decision.effects.map(&:verdict)
  end

  def test_a_settled_case_stays_and_the_open_one_goes_on
    subject = procedure(10)
    first = (0...8).map { |number| subject.add(block(number, "clear" => 1.5, "noisy" => 1 + 0.3 * (number % 2))) }.last
    assert_equal [false, ["noisy"]], [first.stop?, first.open]
    last = (8...10).map { |number| subject.add(block(number, "clear" => 0.1, "noisy" => 1 + 0.3 * (number % 2))) }.last
    assert_equal [true, ["noisy"], true], [last.stop?, last.open, last.look.last?]
    assert_equal first.effects.first, last.effects.first
    assert_equal({ "clear" => :slower, "noisy" => :undecided },
                 last.effects.to_h { |effect| [effect.name, effect.verdict] })
  end

  def test_it_can_end_anywhere
    subject = procedure(60)
    assert_empty subject.finish.effects
    subject.add(block(0, "x" => 2.0))
    assert_equal [:undecided, "1 pair: 8 are needed"], subject.finish.effects.first.to_h.values_at(:verdict, :reason)
    (1...9).each { |number| assert_nil subject.add(block(number, "x" => 2.0)) }
    assert_equal [true, :slower], [subject.finish.stop?, subject.finish.effects.first.verdict]
  end

  NOISES = %i[gaussian heavy skewed loaded drifting autocorrelated].freeze

  def tally(noise, truth, trials, alpha: 0.01, **rest)
    comparison = Comparison.new(alpha: alpha, margin: 0.01)
    Oracle::Trial.tally(trials, comparison: comparison, truth: truth, **rest) do |number|
      Oracle::Trial::Noise.public_send(noise, Random.new(7000 + number), truth)
    end
  end

  NOISES.each do |noise|
    define_method("test_#{noise}_identical_sides_are_rarely_told_apart") do
      found = tally(noise, 1.0, 150)
      assert_operator found.share(:slower, :faster), :<=, 0.02, found.inspect
      assert_operator found.share(:same), :>=, 0.85, found.inspect
    end

    define_method("test_#{noise}_twice_the_margin_is_found_and_never_called_same") do
      found = tally(noise, 1.02, 100)
      assert_operator found.share(:slower), :>=, 0.98, found.inspect
      assert_equal 0.0, found.share(:same, :faster), found.inspect
    end
  end

  # Early stopping does not change how often the final interval contains the true value.
  # Over 3000 trials each, six noises and five effects gave 93.0–96.8% at 95% and 98.3–99.7% at 99%.
  [[0.05, 1.0, 600], [0.05, 1.01, 400], [0.05, 1.02, 400],
   [0.01, 1.0, 300], [0.01, 1.01, 300]].each do |alpha, truth, trials|
    define_method("test_intervals_cover_#{truth}_as_often_as_they_say_at_#{alpha}") do
      found = tally(:gaussian, truth, trials, alpha: alpha, max_pairs: 40)
      assert_in_delta 1 - alpha, found.covered, 0.02, found.inspect
    end
  end

  # An effect as large as the margin is called the same in at most one of twenty trials.
  def test_the_margin_itself_is_rarely_inside
    found = tally(:gaussian, 1.01, 300)
    assert_operator found.share(:same), :<=, 0.05, found.inspect
  end
end
