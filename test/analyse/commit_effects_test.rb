# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "pitwall/analyse"
require "pitwall/record/sample"

# Commits of a known truth, measured with known noise: who gets the pairs, and what is said of the commits.
class CommitEffectsTest < Minitest::Test
  Side = Struct.new(:name, :facts)
  SIDES = [Side.new("before", {}), Side.new("after", {})].freeze

  # Measures units of a known truth: name → [kind, true ratio]. A pair costs one of the budget.
  # @return the CommitEffects, and the pairs of each unit
  def measure(units, noise:, pairs:, random: Random.new(1), alpha: 0.001)
    comparison = Pitwall::Analyse::Comparison.new(alpha: alpha)
    plans = units.transform_values { 4 * pairs / units.size }
    budget = Pitwall::Analyse::DividedBudget.new(plans, comparison: comparison, base: "before", side: "after")
    samples = []
    pairs.times do |number|
      name = budget.next or break
      block = pair(name, number, units.fetch(name).last * Math.exp(normal(random, noise)))
      budget.add(name, block)
      samples.concat(block)
    end
    facts = units.map do |name, (kind, _)|
      commits = kind == "together" ? [] : [{ "id" => name[/\d/] * 40, "title" => "" }]
      { "name" => name, "kind" => kind, "case" => "work", "commits" => commits }
    end
    report = Pitwall::Analyse::ComparisonReport.of(samples, cases: [], plans: plans, sides: SIDES,
                                                            settings: { "alpha" => alpha, "margin" => 0.01 })
    found = Pitwall::Analyse::CommitEffects.new(report, { "range" => "a..b", "units" => facts })
    [found, samples.map { |sample| [sample.name, sample.block] }.uniq.map(&:first).tally, report, budget]
  end

  def pair(name, number, ratio)
    [["before", 1e6], ["after", 1e6 * ratio]].each_with_index.map do |(side, time), order|
      Pitwall::Record::Sample.new(side: side, name: name, block: number, order: order, values: { "wall" => [time] },
                                  notes: [])
    end
  end

  def normal(random, noise) = noise * Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)

  def units(*ratios)
    steps = ratios.each_with_index.to_h { |ratio, at| ["#{at + 1}", ["step", ratio]] }
    steps.merge("all" => ["together", ratios.inject(:*)])
  end

  def test_the_slower_commit_is_named_and_the_product_fits
    found, _, report, budget = measure(units(1, 1, 1.03, 1, 0.95, 1), noise: 0.004, pairs: 500)
    outcome = found.outcomes.first
    assert_equal({ "5" => :faster, "3" => :slower }, outcome.named.to_h { |unit, effect| [unit.name, effect.verdict] })
    assert_equal :agree, outcome.agreement.verdict
    assert_includes outcome.product.low..outcome.product.high, 1.03 * 0.95
    assert_equal %w[5 3], found.to_be_tried_alone(3).map(&:name)
    # The report says the same as the live procedure did.
    live = budget.effects.to_h { |effect| [effect.name, effect.verdict] }
    assert_equal(live, report.headline.to_h { |effect| [effect.name, effect.verdict] })
    again = Pitwall::Analyse::CommitEffects.new(report, JSON.parse(JSON.generate(found.to_facts)))
    assert_equal outcome.named.map { |unit, _| unit.name }, again.outcomes.first.named.map { |unit, _| unit.name }
  end

  # All get the fewest pairs. What is soon clear gets few more than the noisy ones.
  def test_pairs_go_where_the_doubt_is
    random = Random.new(3)
    clear = { "1" => ["step", 1.5], "2" => ["step", 0.7], "3" => ["step", 1.012] }
    _, pairs, = measure(clear, noise: 0.02, pairs: 150, random: random)
    assert_operator pairs.values.min, :>=, 8
    assert_operator pairs["3"], :>, 2 * [pairs["1"], pairs["2"]].max
  end

  def test_commits_that_interact_and_measurements_that_do_not_fit
    found, = measure({ "1" => ["step", 1.0], "2" => ["step", 1.1], "all" => ["together", 1.1],
                       "2 alone" => ["alone", 1.3] }, noise: 0.003, pairs: 400)
    assert_equal [:differ, :agree], [found.outcomes.first.alone.first.agreement.verdict,
                                     found.outcomes.first.agreement.verdict]
    odd = { "1" => ["step", 1.1], "2" => ["step", 1.1], "all" => ["together", 1.0] }
    found, = measure(odd, noise: 0.003, pairs: 400)
    assert_equal :differ, found.outcomes.first.agreement.verdict
    found, = measure(odd, noise: 0.5, pairs: 30)
    assert_equal :unclear, found.outcomes.first.agreement.verdict
  end

  def test_nothing_measured
    found = Pitwall::Analyse::CommitEffects.new(
      Pitwall::Analyse::ComparisonReport.of([], cases: [], plans: {}, sides: SIDES, settings: {}),
      { "range" => "a..b", "units" => [{ "name" => "1", "kind" => "step", "case" => "work", "commits" => [] }] }
    )
    assert_equal [[], nil, nil], found.outcomes.first.to_h.values_at(:named, :product, :agreement)
  end
end
