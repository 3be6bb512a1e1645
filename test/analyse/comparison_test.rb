# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../oracle/trial"
require "json"
require "pitwall/analyse/compare/comparison"

class ComparisonTest < Minitest::Test
  include Pitwall::Analyse

  SWAPPED = { slower: :faster, faster: :slower, more: :fewer, fewer: :more, same: :same, undecided: :undecided }.freeze

  def sample(side, block, values, name: "x", notes: [])
    Pitwall::Record::Sample.new(side: side, name: name, block: block, order: 0, values: values, iterations: 1,
                                warmup: 0, notes: notes)
  end

  # The block returns the values of a side in a pair.
  def pairs(count, sides = %w[A B], **rest)
    (0...count).flat_map { |block| sides.map { |side| sample(side, block, yield(side, block), **rest) } }
  end

  def noise(random, deviation = 0.005) = Math.exp(deviation * Oracle::Trial::Noise.normal(random))

  # Wall time of several batches, and other metrics. B takes `ratio` times as long as A.
  def measured(count, ratio, seed: 1, sides: %w[A B])
    random = Random.new(seed)
    pairs(count, sides) do |side, _|
      factor = side == "A" ? 1.0 : ratio
      collections = Array.new(5) { random.rand(5) / 4 }
      { "wall" => Array.new(5) { 1e6 * factor * noise(random) }, "cpu" => [9e5 * noise(random)],
        "max_rss" => [2e7 * noise(random)], "objects" => [5.0] * 5, "gc_runs" => collections,
        "gc_time" => collections.map { |runs| runs * 1000 } }
    end
  end

  def compare(samples, sides: ["B"], look: Sequential::ONLY, **options)
    Comparison.new(**options).effects(samples, base: "A", sides: sides, look: look)
  end

  def headline(samples, **options) = compare(samples, **options).find { |effect| effect.metric == "wall" }
  def metric(samples, name, **options) = compare(samples, **options).find { |effect| effect.metric == name }

  def test_an_effect
    effect = headline(measured(20, 1.03))
    assert_equal ["x", "B", "A", "wall", "ns", :slower, false, 20, 0.01, false, nil],
                 effect.to_h.values_at(:name, :side, :base, :metric, :unit, :verdict, :exact, :pairs, :margin,
                                       :below_margin, :reason)
    assert_in_delta 1e6, effect.a, 5000
    assert_in_delta 1.03e6, effect.b, 5000
    assert_in_delta 1.03, effect.ratio.point, 0.003
    assert_equal [0.99, 20], [effect.ratio.level, effect.ratio.n]
    assert_operator effect.ratio.low, :>, 1
    assert_equal [true, true, false], [effect.decided?, effect.worse?, effect.better?]
  end

  # A process's median without garbage collection, plus the mean of garbage collection.
  def process(sample)
    gc = sample["gc_time"]
    sample["wall"].zip(gc).map { |wall, collecting| wall - collecting }.sort[2] + (gc.sum / 5.0)
  end

  # Trimmed mean of ln of the processes' ratios, with Student's quantile.
  def test_the_interval_is_yuens_on_the_logarithms
    samples = measured(23, 1.004)
    differences = samples.group_by(&:block).values.map { |a, b| Math.log(process(b) / process(a)) }
    expected = Statistics.interval(differences, level: 0.99).map { |value| Math.exp(value) }
    found = headline(samples)
    %i[point low high].each { |part| assert_in_delta expected[part], found.ratio[part], 1e-12 }
    error = Statistics.yuen(differences).standard_error
    assert_in_delta Math.exp((2.878440472713585 + 0.8620486715213) * error) - 1, found.smallest_detectable,
                    1e-9 # Student's, 18 degrees
  end

  def test_the_boundary_of_a_look_decides
    samples = measured(10, 1.01)
    assert_equal :slower, headline(samples).verdict
    early = headline(samples, look: Sequential::Plan.new(60).look(10))
    assert_equal :undecided, early.verdict
    assert_operator early.ratio.low, :<, 1
    assert_equal :slower, headline(samples, look: Sequential::Plan.new(60).last_look(10)).verdict
    passed = headline(measured(10, 1.2), look: Sequential::Plan.new(60).look(10))
    assert_equal :slower, passed.verdict
    assert_in_delta headline(measured(10, 1.2)).ratio.low, passed.ratio.low, 1e-12
  end

  def test_same_and_below_the_margin
    same = headline(measured(30, 1.0))
    assert_equal [:same, false], [same.verdict, same.below_margin]
    small = headline(measured(60, 1.005), margin: 0.02)
    assert_equal [:slower, true], [small.verdict, small.below_margin]
    assert_equal [:undecided, nil], headline(measured(8, 1.0), margin: 0.0001).to_h.values_at(:verdict, :reason)
  end

  def test_few_pairs_decide_nothing_about_clocks
    (1..7).each do |count|
      effect = headline(measured(count, 3.0))
      assert_equal :undecided, effect.verdict
      assert_equal "#{count} #{count == 1 ? 'pair' : 'pairs'}: 8 are needed", effect.reason
      assert_equal count == 1, effect.smallest_detectable.nil?
    end
    assert_equal :slower, headline(measured(8, 3.0)).verdict
  end

  def test_swapping_the_sides_turns_everything_round
    (1..40).each do |seed|
      samples = measured(8 + seed, 0.97 + 0.0015 * seed, seed: seed)
      swapped = samples.map { |one| one.dup.tap { |copy| copy.side = { "A" => "B", "B" => "A" }[one.side] } }
      compare(samples).zip(compare(swapped)) do |one, other|
        assert_equal SWAPPED[one.verdict], other.verdict, one.metric
        assert_equal [one.a, one.b], [other.b, other.a]
        assert_equal one.below_margin, other.below_margin
        next assert_nil other.ratio.point unless one.ratio.point

        assert_in_epsilon 1 / one.ratio.point, other.ratio.point, 1e-9
        assert_in_epsilon 1 / one.ratio.low, other.ratio.high, 1e-9
        assert_in_epsilon one.smallest_detectable, other.smallest_detectable, 1e-9 if one.smallest_detectable
      end
    end
  end

  def test_scale_and_order_change_nothing
    samples = measured(19, 1.01)
    scaled = samples.map do |one|
      one.dup.tap { |copy| copy.values = one.values.transform_values { |values| values.map { |value| value * 1024 } } }
    end
    shuffled = samples.shuffle(random: Random.new(1))
    expected = compare(samples).map { |effect| [effect.metric, effect.verdict, effect.pairs] }
    [scaled, shuffled].each do |changed|
      assert_equal expected, compare(changed).map { |effect| [effect.metric, effect.verdict, effect.pairs] }
      compare(samples).zip(compare(changed)) do |one, other|
        assert_in_delta one.ratio.point, other.ratio.point, 1e-9 if one.ratio.point
      end
    end
  end

  # The interval shows the verdict.
  def test_verdicts_and_intervals_agree
    plan = Sequential::Plan.new(24)
    (1..150).each do |seed|
      pairs = [8, 12, 20, 24][seed % 4]
      compare(measured(pairs, 1 + 0.0002 * seed * (-1)**seed, seed: seed), look: plan.last_look(pairs)).each do |effect|
        next unless effect.ratio.interval?

        low, high = effect.ratio.low, effect.ratio.high
        assert_operator low, :<=, effect.ratio.point
        assert_operator effect.ratio.point, :<=, high
        case effect.verdict
        when :slower, :more then assert_operator low, :>, 1
        when :faster, :fewer then assert_operator high, :<, 1
        when :undecided then assert_operator low, :<=, 1 && high
        else assert_operator (effect.ratio.point - 1).abs, :<, effect.margin
        end
      end
    end
  end

  def test_metrics_in_their_order
    assert_equal %w[wall wall_mean cpu gc_time objects gc_runs max_rss], compare(measured(9, 1.0)).map(&:metric)
    samples = pairs(9) { |side, _| { "zebra" => [1], "wall" => [2.0], "objects" => side == "A" ? [1] : [] } }
    assert_equal %w[wall zebra], compare(samples).map(&:metric)
    assert_equal %w[objects wall],
                 compare(pairs(9) { { "wall" => [1.0], "objects" => [2] } }, headline: "objects").map(&:metric)
  end

  def test_the_mean_sees_what_the_median_hides
    random = Random.new(2)
    samples = pairs(12) do |side, _|
      { "wall" => Array.new(20) { |batch| (side == "B" && batch == 10 ? 2e6 : 1e6) * noise(random, 0.001) } }
    end
    assert_equal [:same, :slower], compare(samples).map(&:verdict)
    assert_in_delta 1.05, metric(samples, "wall_mean").ratio.point, 0.002
  end

  # All other metrics together have the alpha that the headline metric has alone.
  def test_other_metrics_are_corrected
    random = Random.new(5)
    samples = pairs(12) do |side, _|
      { "wall" => [noise(random)], "cpu" => [(side == "B" ? 1.1 : 1.0) * noise(random)], "user" => [noise(random)] }
    end
    assert_equal [0.99, 0.995, 0.99], compare(samples).map { |effect| effect.ratio.level }
    assert_equal [:slower, :undecided],
                 [metric(samples, "cpu").verdict, metric(samples, "user", margin: 0.0001).verdict]
  end

  def test_sides_share_the_doubt
    effects = compare(measured(12, 1.2, sides: %w[A B C]), sides: %w[B C]).select { |effect| effect.metric == "wall" }
    assert_equal [%w[B A], %w[C A]], effects.map { |effect| [effect.side, effect.base] }
    assert_equal [0.995, 0.995], effects.map { |effect| effect.ratio.level }
  end

  def test_cases_are_apart
    samples = pairs(9, name: "one") { |side, _| { "wall" => [side == "A" ? 1.0 : 2.0] } }
    samples += pairs(9, name: "two") { { "wall" => [1.0] } }
    assert_equal [["one", :slower], ["two", :same]], compare(samples).map { |effect| [effect.name, effect.verdict] }
    comparison = Comparison.new
    effects = comparison.effects(samples, base: "A", sides: ["B"])
    assert comparison.decided?(effects)
    refute comparison.decided?([])
    refute comparison.decided?(effects + [headline(measured(3, 1.0))])
  end

  def test_only_whole_pairs_count
    samples = measured(12, 1.0)
    lost = samples.reject { |one| (one.side == "A" && one.block == 3) || (one.side == "B" && one.block > 9) }
    assert_equal 9, headline(lost).pairs
    alone = headline(samples.select { |one| one.side == "A" })
    assert_equal [:undecided, 0, nil, "nothing was measured on both sides"],
                 alone.to_h.values_at(:verdict, :pairs, :a, :reason)
  end

  # Counts

  def counts(count, a, b, name = "objects")
    metric(pairs(count) { |side, _| { "wall" => [1.0], name => side == "A" ? a : b } }, name)
  end

  def test_one_pair_tells_exact_counts_apart
    effect = counts(1, [200.0] * 3, [201.0] * 3)
    assert_equal [:more, true, 200.0, 201.0, true], effect.to_h.values_at(:verdict, :exact, :a, :b, :below_margin)
    assert_equal [nil, nil], effect.to_h.values_at(:smallest_detectable, :reason)
    assert_equal [1.005, 1.005, 1.005, 1.0], effect.ratio.to_a.first(4)
    assert effect.ratio.exact?
    assert_equal [:fewer, false], counts(1, [5, 5], [4, 4]).to_h.values_at(:verdict, :below_margin)
    assert_equal [:same, 1.0], [counts(1, [5, 5], [5, 5]).verdict, counts(1, [5, 5], [5, 5]).ratio.point]
  end

  def test_identical_counts_change_nothing_else
    samples = measured(10, 1.02)
    with = samples.map { |one| one.dup.tap { |copy| copy.values = one.values.merge("class_serial" => [3, 3]) } }
    assert_equal compare(samples), compare(with).reject { |effect| effect.metric == "class_serial" }
  end

  def test_nothing_and_something
    assert_equal [:same, 1.0], [counts(1, [0, 0], [0, 0]).verdict, counts(1, [0, 0], [0, 0]).ratio.point]
    assert_equal [:more, nil, nil, nil],
                 [counts(1, [0, 0], [3, 3]).verdict, *counts(1, [0, 0], [3, 3]).ratio.to_a.first(3)]
    assert_equal [:fewer, 0.0], [counts(1, [3, 3], [0, 0]).verdict, counts(1, [3, 3], [0, 0]).ratio.point]
  end

  def test_one_value_a_process_proves_nothing_until_repeated
    assert_equal [:undecided, false], counts(7, [5], [6], "major_faults").to_h.values_at(:verdict, :exact)
    assert_equal [:more, true], counts(8, [5], [6], "major_faults").to_h.values_at(:verdict, :exact)
  end

  def test_counts_that_vary_are_as_noisy_as_clocks
    random = Random.new(6)
    samples = pairs(20) do |side, _|
      { "wall" => [1.0], "minor_faults" => [(side == "A" ? 1000 : 1100) + random.rand(30)] }
    end
    effect = metric(samples, "minor_faults")
    assert_equal [:more, false], effect.to_h.values_at(:verdict, :exact)
    assert_in_delta 1.1, effect.ratio.point, 0.02
    assert_in_delta 1014, effect.a, 10
  end

  def test_rare_counts
    rare = lambda do |random, often|
      pairs(60) do |side, _|
        { "wall" => [1.0], "gc_runs" => [random.rand < (side == "A" ? 0.1 : often) ? 1 : 0] }
      end
    end
    wrong = (1..100).count { |seed| metric(rare.call(Random.new(seed), 0.1), "gc_runs").decided? }
    assert_operator wrong, :<=, 3
    found = metric(rare.call(Random.new(1), 0.9), "gc_runs")
    assert_equal :more, found.verdict
    assert_operator found.ratio.low, :>, 1
    assert_in_delta 9, found.b / found.a, 6
    never = metric(pairs(20) { |side, block| { "wall" => [1.0], "gc_runs" => [side == "A" ? 0 : 1 + block % 2] } },
                   "gc_runs")
    assert_equal [:more, nil], [never.verdict, never.ratio.point]
  end

  # Refusals

  def test_values_that_are_no_times
    [Float::NAN, Float::INFINITY, -1, -0.5, 0, nil, "1", 1e300, Complex(1, 1)].each do |wrong|
      samples = measured(10, 1.5)
      samples[7].values["wall"][2] = wrong
      effects = compare(samples)
      effects.first(2).each do |effect|
        assert_equal :undecided, effect.verdict
        assert_match(/\A#{effect.metric}: .* was measured/, effect.reason)
      end
      assert_equal %w[wall wall_mean], effects.first(2).map(&:metric)
      assert_equal :same, effects.find { |effect| effect.metric == "objects" }.verdict
    end
  end

  def test_every_effect_can_be_written_as_json
    (0..12).each do |count|
      wild = headline(pairs(10) { |side, block| { "wall" => [side == "A" ? 1 : 1e90**(block % 2)] } })
      effects = compare(measured(count, 1e30)) + [counts(3, [0, 0], [1, 1]), counts(2, [0], [1]), wild]
      effects.each { |effect| JSON.generate(effect.to_h.merge(ratio: effect.ratio.to_h)) }
    end
  end

  def test_no_steady_state
    random = Random.new(8)
    falling = pairs(10) do |side, _|
      { "wall" => Array.new(20) { |batch| (side == "B" ? 1e6 - 5000 * batch : 1e6) * noise(random) },
        "objects" => [1, 1] }
    end
    effect = headline(falling)
    assert_equal :undecided, effect.verdict
    assert_match(/\Ano steady state: B changed by -[45]\.\d% over the timed iterations\z/, effect.reason)
    assert_equal :same, metric(falling, "objects").verdict
    assert_nil headline(measured(10, 1.0)).reason
  end

  def test_processes_that_say_they_were_not_steady
    unsteady = lambda do |count|
      measured(9, 1.5).each_with_index { |one, index| one.notes = index < count ? [:unsteady] : [] }
    end
    assert_equal :slower, headline(unsteady.call(6)).verdict
    refused = headline(unsteady.call(7))
    assert_equal [:undecided, "no steady state: 7 of 18 processes were not warm in time"],
                 [refused.verdict, refused.reason]
  end

  def test_nonsense_is_refused
    [0, 1, -0.1].each { |alpha| assert_raises(ArgumentError) { Comparison.new(alpha: alpha) } }
    assert_raises(ArgumentError) { Comparison.new(margin: 0) }
    assert_empty compare([])
  end
end
