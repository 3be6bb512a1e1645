# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/analyse/compare/bench_summary"
require "pitwall/analyse/statistics/effect"
require "pitwall/record/sample"

class BenchSummaryTest < Minitest::Test
  BenchSummary = Pitwall::Analyse::BenchSummary

  def test_time_is_the_median_over_processes_of_their_medians
    samples = [10.0, 11.0, 12.0, 13.0, 90.0].each_with_index.map do |time, block|
      sample(block: block, wall: [time, time, time * 30])
    end
    kase = summary(samples)
    assert_equal 12.0, kase.time.point
    assert_equal [10.0, 90.0, 5], [kase.time.low, kase.time.high, kase.time.n]
    assert_in_delta 1 - 2 * 0.5**5, kase.time.level, 1e-12, "five processes don't reach 99%"
    assert_in_delta 1e9 / 12, kase.rate.point, 1e-3
    assert_in_delta 1e9 / 90, kase.rate.low, 1e-3
    assert_equal 10.0, kase.best
    assert_equal [10.0, 11.0, 12.0, 13.0, 90.0], kase.process_values
    assert_equal 15, kase.batch_values.size
    assert_equal kase.batch_values.sort, kase.batch_values
    assert_operator kase.p95, :>, 300
    assert_equal [5, 1500, 40], [kase.processes, kase.iterations, kase.warmup]
  end

  def test_the_first_run_stands_apart
    firsts = [100, 300, 200]
    kase = summary(firsts.each_with_index.map { |first, block| sample(block: block, wall: [2.0], first_ns: first) })
    assert_equal 200, kase.first_ns
    assert_equal 100.0, kase.first_ratio
  end

  def test_counts_that_repeat_are_exact_and_others_have_a_mean
    samples = 6.times.map do |block|
      sample(block: block, wall: [10.0, 10.0], "objects" => [3, 3], "bytes" => [120, 120],
             "gc_runs" => [0, block == 2 ? 0.5 : 0],
             "gc_time" => [0, block == 2 ? 6.0 : 0])
    end
    kase = summary(samples)
    objects = kase.values["objects"]
    assert objects.exact
    assert_equal [3, 3, 3, 1.0, 6],
                 [objects.estimate.point, objects.estimate.low, objects.estimate.high, objects.estimate.level,
                  objects.estimate.n]
    assert_equal "bytes", kase.values["bytes"].unit
    runs = kase.values["gc_runs"]
    refute runs.exact
    assert_in_delta 0.25 / 6, runs.estimate.point, 1e-12
    assert_equal 0.0, runs.estimate.low
    assert_in_delta 0.5, kase.values["gc_time"].estimate.point, 1e-12, "the median would hide it"
    assert_equal 0.5, runs.worst
    refute kase.values["wall"].exact, "a clock never is"
    assert_equal %w[wall gc_time objects bytes gc_runs], kase.values.keys, "in the order of METRICS"
  end

  def test_cpu_and_gc_as_shares_of_wall_time
    samples = 3.times.map { |block| sample(block: block, wall: [10.0, 30.0], "cpu" => [5.0], "gc_time" => [0, 20.0]) }
    kase = summary(samples)
    assert_equal 0.25, kase.cpu_share
    assert_equal 0.5, kase.gc_share
    assert_nil summary([sample(wall: [1.0])]).cpu_share
  end

  def test_a_command_has_best_and_median_of_all_it_measured
    samples = 9.times.map do |block|
      command(block: block, "wall" => [100 + block], "user" => [50 + block], "system" => [9],
              "max_rss" => [1_000_000 + block],
              "minor_faults" => [700 + block % 3], "voluntary_switches" => [4])
    end
    kase = summary(samples, name: "ruby -e 1")
    assert kase.command
    assert_nil kase.first_ns
    assert_equal [104.0, 100], [kase.time.point, kase.best]
    assert_operator kase.time.low, :<, 104
    assert_equal 701, kase.values["minor_faults"].estimate.point
    assert_equal 700, kase.values["minor_faults"].best
    assert_equal 1_000_004, kase.values["max_rss"].estimate.point
    assert kase.values["voluntary_switches"].exact
    refute kase.values["system"].exact
  end

  def test_cases_come_in_the_order_of_the_file
    samples = %w[b a c].each_with_index.map { |name, order| sample(name: name, order: order, wall: [1.0]) }
    assert_equal %w[b a c], BenchSummary.of(samples.reverse).map(&:name)
    assert_equal %w[c a], BenchSummary.of(samples, names: %w[c a x]).map(&:name)
    assert_empty BenchSummary.of([])
  end

  def test_a_case_without_times
    kase = summary([sample(wall: [], "objects" => [1])])
    assert_nil kase.time
    assert_nil kase.rate
    assert_nil kase.p95
    assert_empty kase.process_values
    assert_nil summary([sample(wall: [0])]).rate
  end

  def test_compare_ranks_the_fastest_first
    times = { "slow" => 30.0, "fast" => 10.0, "middle" => 20.0 }
    cases = BenchSummary.of(times.map { |name, time| sample(name: name, wall: [time]) })
    effects = [%w[slow wall], %w[middle wall], %w[slow objects]].map do |side, metric|
      Pitwall::Analyse::Effect.new(name: side, side: side, base: "fast", metric: metric)
    end
    ranked = BenchSummary.ranked(cases, effects)
    assert_equal %w[fast middle slow], ranked.map { |line| line.case.name }
    assert_equal [nil, effects[1], effects[0]], ranked.map(&:effect)
  end

  def test_scaled_times_scale_estimates_and_keep_orders
    samples = random_samples
    scaled = samples.map do |sample|
      sample.dup.tap { |copy| copy.values = copy.values.merge("wall" => copy["wall"].map { |value| value * 8 }) }
    end
    BenchSummary.of(samples).zip(BenchSummary.of(scaled)) do |before, after|
      %i[point low high].each { |part| assert_in_delta 8, after.time[part] / before.time[part], 1e-9 }
      assert_in_delta before.rate.low / 8, after.rate.low, 1e-6
      assert_in_delta 8, after.p95 / before.p95, 1e-9
      assert_equal before.values["objects"], after.values["objects"]
    end
    ranked = [samples, scaled].map { |group| BenchSummary.ranked(BenchSummary.of(group), []) }
    assert_equal(*ranked.map { |lines| lines.map { |line| line.case.name } })
  end

  def test_the_order_of_samples_does_not_matter
    samples = random_samples
    plain = BenchSummary.of(samples)
    5.times { |seed| assert_equal plain, BenchSummary.of(samples.shuffle(random: Random.new(seed))) }
  end

  private

  def summary(samples, name: "join")
    cases = BenchSummary.of(samples)
    assert_equal [name], cases.map(&:name)
    cases.first
  end

  def sample(wall:, name: "join", block: 0, order: 0, first_ns: 1000, **values)
    Pitwall::Record::Sample.new(side: "", name: name, block: block, order: order,
                                values: { "wall" => wall }.merge(values), iterations: 300,
                                first_ns: first_ns, warmup: 40, digest: nil, notes: [])
  end

  def command(block:, **values)
    Pitwall::Record::Sample.new(side: "", name: "ruby -e 1", block: block, order: 0, values: values, iterations: 1,
                                first_ns: nil, warmup: 0,
                                digest: nil, notes: [])
  end

  def random_samples
    random = Random.new(3)
    12.times.flat_map do |block|
      %w[a b c].shuffle(random: random).each_with_index.map do |name, order|
        wall = Array.new(10) { (name.ord - 90) * 100.0 * (1 + 0.2 * random.rand) }
        sample(name: name, block: block, order: order, wall: wall, "objects" => [3] * 10,
               "cpu" => wall.map { |value| value * 0.9 })
      end
    end
  end
end
