# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/analyse/compare/measurement_warnings"
require "pitwall/record/sample"

class MeasurementWarningsTest < Minitest::Test
  MeasurementWarnings = Pitwall::Analyse::MeasurementWarnings

  def test_good_measurements_have_none
    assert_empty warnings(processes)
    assert_empty MeasurementWarnings.of([])
    quiet = { "others" => 0.03, "steal" => 0.0, "load_before" => 0.7, "cores" => 2, "idle" => 0.4 }
    assert_empty warnings(processes, host: quiet, settings: { "pinned" => true })
  end

  def test_an_outlier_is_named
    samples = processes do |sample, block|
      sample.values["wall"] = sample["wall"].map { |value| value * 1.8 } if block == 13
    end
    warning = only(warnings(samples))
    assert_equal [:outlier, "join", "process 14 took 1.8x the median", "the median is not moved by it"], warning.to_a
    many = processes do |sample, block|
      sample.values["wall"] = sample["wall"].map { |value| value * (2 + block) } if block > 16
    end
    assert_equal "process 20 took 21x the median, and 2 more are far out", only(warnings(many)).text
    assert_includes only(warnings(many)).hint, "close it"
  end

  def test_not_steady_by_what_processes_say_and_by_what_they_do
    said = processes { |sample, block| sample.notes = [:unsteady] if block < 4 }
    warning = only(warnings(said))
    assert_equal [:not_steady, "4 of 20 processes were not steady when they were timed", "try --warmup 200"],
                 warning.to_a.values_at(0, 2, 3)
    assert_equal "try --warmup 48",
                 only(warnings(processes { |sample| sample.notes = [:unsteady] }, settings: { "warmup" => 12 })).hint
    drifting = processes do |sample|
      sample.values["wall"] = sample["wall"].each_with_index.map { |value, at| value * (1 - 0.02 * at) }
    end
    assert_equal "iterations got 10% faster while they were timed", only(warnings(drifting)).text
  end

  def test_the_hint_for_too_few_processes_depends_on_what_limited_them
    few = processes(3)
    assert_equal "try a longer --budget", only(warnings(few)).hint
    assert_equal "try --budget 10", only(warnings(few, settings: { "budget_s" => 5.0 })).hint
    assert_equal "allow more than 3: --runs of bench, --pairs of compare",
                 only(warnings(few, settings: { "budget_s" => 5.0, "max_blocks" => 3 })).hint
    assert_equal [:few_samples, "1 process: the interval says little"],
                 only(warnings(processes(1))).to_a.values_at(0, 2)
  end

  def test_a_slow_first_run
    slow = processes { |sample| sample.first_ns = 120_000_000 }
    assert_equal [:slow_first_run, "the first run takes 120x a later one"], only(warnings(slow)).to_a.values_at(0, 2)
    nothing = processes { |sample| (sample.values["wall"] = [50.0] * 10) && sample.first_ns = 9000 }
    assert_empty warnings(nothing), "9 µs instead of 50 ns is nobody's concern"
    cold = processes do |sample, block|
      sample.first_ns = nil
      sample.iterations = 1
      sample.values = { "wall" => [block.zero? ? 2.0e8 : 1.0e8 + block] }
    end
    warning = only(warnings(cold))
    assert_equal [:slow_first_run, "the first process took 2.0x the others' median: caches were cold"],
                 [warning.kind, warning.text]
  end

  def test_gc_takes_the_time
    samples = processes { |sample| sample.values["gc_time"] = sample["wall"].map { |value| value * 0.34 } }
    warning = only(warnings(samples))
    assert_equal [:gc_dominated, "GC takes 34% of the time"], [warning.kind, warning.text]
    assert_includes warning.hint, "--gc apart"
  end

  def test_what_processes_noticed_of_themselves
    kinds = { coarse_clock: :clock_too_coarse, threads_left: :threads_left, forked: :forked, prints: :prints }
    kinds.each do |note, kind|
      assert_equal kind, only(warnings(processes { |sample| sample.notes = [note] })).kind
      assert_includes only(warnings(processes { |sample, block| sample.notes = [note] if block < 2 })).text,
                      "(2 of 20 processes)"
    end
    assert_equal :results_differ, only(warnings(processes { |sample, block| sample.digest = block.even?.to_s })).kind
    assert_empty warnings(processes { |sample| sample.digest = "same" })
  end

  def test_a_busy_host
    host = { "others" => 0.34, "steal" => 0.03, "load_before" => 3.1, "cores" => 2 }
    text = "the host was busy: others used 34% of its CPU time, the hypervisor took 3.0%, " \
           "load 3.1 on 2 cores before it began"
    warning = only(warnings(processes, host: host, settings: { "budget_s" => 30 }))
    assert_equal [:host_busy, nil, text, "close what else runs, or try --budget 60"], warning.to_a
    assert_equal "close what else runs",
                 only(warnings(processes, host: host, settings: { "budget_s" => 30 }, advised: true)).hint
    assert_equal "leave out --no-pin",
                 only(warnings(processes, host: { "others" => 0.5 }, settings: { "pinned" => false })).hint
    switched = processes { |sample| sample.values["involuntary_switches"] = [0.5] }
    assert_equal "the host was busy: a case lost the core 499 times a second", only(warnings(switched)).text
  end

  def test_sides_are_told_apart_where_there_are_several
    samples = %w[main dirty].flat_map do |side|
      processes { |sample| (sample.side = side) && sample.notes = (side == "dirty" ? [:forked] : []) }
    end
    assert_equal "join, dirty", only(warnings(samples)).subject
  end

  def test_the_order_of_samples_does_not_matter
    samples = processes do |sample, block|
      sample.values["wall"] = sample["wall"].map { |value| value * 1.8 } if block == 13
    end
    assert_equal warnings(samples), warnings(samples.shuffle(random: Random.new(1)))
  end

  private

  def warnings(samples, **more) = MeasurementWarnings.of(samples, **more)

  def only(warnings)
    assert_equal 1, warnings.size, warnings.inspect
    warnings.first
  end

  # About 1 ms per iteration, ±1% between processes.
  def processes(count = 20)
    random = Random.new(9)
    Array.new(count) do |block|
      process = 1e6 * (1 + 0.02 * (random.rand - 0.5))
      sample = Pitwall::Record::Sample.new(side: "A", name: "join", block: block, order: 0, iterations: 30,
                                           first_ns: 2_000_000, warmup: 20,
                                           digest: nil, notes: [],
                                           values: { "wall" => Array.new(10) { process * (1 + 0.002 * random.rand) } })
      yield sample, block if block_given?
      sample
    end
  end
end
