# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse/perf/division"

# Which of perf's samples belong to which row, against a slow oracle.
class PerfDivisionTest < Minitest::Test
  Division = Pitwall::Analyse::Perf::Division

  def samples(*list)
    times, periods, tails = list.empty? ? [[], [], []] : list.transpose
    Division::Samples.new(times, periods, tails)
  end

  def division(samples, starts: { 1 => 0 }, unit_ns: 1)
    Division.new(samples: samples, starts: starts, unit_ns: unit_ns)
  end

  # A row of thread 1.
  def row(node, wall, cpu = wall, state: 0, captures: 1, thread: 1) = [thread, state, node, wall, cpu, captures, 0]

  def test_a_sample_belongs_to_the_row_in_whose_time_it_was_taken
    found = division({ 1 => samples([1, 5, :a], [10, 5, :b], [11, 5, :c], [20, 5, :d]) }).call([row(7, 10), row(8, 10)])
    assert_equal [[7, :a], [7, :b], [8, :c], [8, :d]], found.map { |one, tail| [one[2], tail] }
  end

  def test_cpu_time_is_divided_by_periods
    found = division({ 1 => samples([1, 1, :a], [2, 3, :b], [3, 1, :a]) }).call([row(7, 100)])
    assert_equal({ a: 40, b: 60 }, found.to_h { |one, tail| [tail, one[4]] })
    assert_equal [1, 0], found.map { |one, _| one[5] }
  end

  def test_time_off_the_cpu_stays_at_the_rows_own_stack
    found = division({ 1 => samples([50, 1, :a]) }).call([row(7, 100, 10, state: 2)])
    assert_equal [[:a, 10, 10], [nil, 90, 0]], found.map { |one, tail| [tail, one[3], one[4]] }
  end

  def test_the_wall_time_of_a_running_thread_goes_with_its_cpu_time
    found = division({ 1 => samples([50, 1, :a]) }).call([row(7, 100, 10)])
    assert_equal [[:a, 100, 10]], found.map { |one, tail| [tail, one[3], one[4]] }
  end

  def test_a_row_without_a_sample_is_divided_as_the_nearest_of_its_stack
    rows = [row(7, 10), row(7, 10), row(8, 10), row(7, 10), row(7, 10), row(9, 10)]
    found = division({ 1 => samples([1, 1, :a], [41, 1, :b]) }).call(rows)
    assert_equal [:a, :a, nil, :b, :b, nil], found.map(&:last)
  end

  def test_samples_before_a_threads_first_row_and_after_its_last_have_no_place
    one = division({ 1 => samples([100, 1, :a], [101, 1, :b], [111, 1, :c]) }, starts: { 1 => 100 })
    assert_equal [:b], one.call([row(7, 10)]).map(&:last)
    assert_equal 1, one.placed
  end

  def test_threads_that_follow_each_other_on_a_native_thread
    same = samples([5, 1, :a], [25, 1, :b])
    found = division({ 1 => same, 2 => same }, starts: { 1 => 0, 2 => 20 }).call([row(7, 10), row(7, 10, thread: 2)])
    assert_equal [[1, :a], [2, :b]], found.map { |one, tail| [one[0], tail] }
  end

  def test_lists_continue_the_threads_time
    one = division({ 1 => samples([15, 1, :a]) })
    assert_equal [nil], one.call([row(7, 10)]).map(&:last)
    assert_equal [:a], one.call([row(7, 10)]).map(&:last)
  end

  def test_a_tail_of_nothing_keeps_its_share
    found = division({ 1 => samples([1, 1, nil], [2, 1, :a]) }).call([row(7, 100)])
    assert_equal({ nil => 50, a: 50 }, found.to_h { |one, tail| [tail, one[4]] })
  end

  def test_sums_stay_and_samples_are_where_an_oracle_puts_them
    300.times do |seed|
      random = Random.new(seed)
      rows = Array.new(random.rand(1..40)) { random_row(random) }
      unit = [1, 128].sample(random: random)
      starts = { 1 => 1000, 2 => 5000 }
      all = { 1 => random_samples(random, unit), 2 => random_samples(random, unit) }
      one = division(all, starts: starts, unit_ns: unit)
      found = rows.each_slice(7).flat_map { |some| one.call(some) }
      assert_same_sums(rows, found, seed)
      assert_equal oracle_placed(rows, all, starts, unit), one.placed, "seed #{seed}"
    end
  end

  def test_rows_with_samples_are_divided_as_an_oracle_divides_them
    300.times do |seed|
      random = Random.new(seed)
      list = random_samples(random, 1).to_a.transpose
      rows = Array.new(20) { |at| row(at + 1, random.rand(1..900), random.rand(0..900), state: random.rand(3)) }
      found = division({ 1 => samples(*list) }).call(rows).group_by { |one, _| one[2] }
      from = 0
      rows.each do |one|
        inside = list.select { |time, _, _| time > from && time <= from + one[3] }
        assert_shares(one, inside, found.fetch(one[2]), "seed #{seed}") if inside.any?
        from += one[3]
      end
    end
  end

  private

  def random_row(random)
    row(random.rand(1..5), random.rand(0..900), random.rand(0..900), state: random.rand(4), captures: random.rand(3),
                                                                  thread: random.rand(1..3))
  end

  def random_samples(random, unit)
    list = Array.new(random.rand(0..60)) do
      [random.rand(0..20_000) * unit, random.rand(1..9), %i[a b c].sample(random: random)]
    end
    samples(*list.sort_by(&:first))
  end

  def assert_same_sums(rows, found, seed)
    assert_equal sums(rows), sums(found.map(&:first)), "seed #{seed}"
    found.each { |one, _| assert_operator one[3..5].min, :>=, 0 }
  end

  # Wall time, CPU time and captures of each thread, state, node and label set.
  def sums(rows)
    rows.group_by { |one| one.values_at(0, 1, 2, 6) }
        .transform_values { |same| [3, 4, 5].map { |at| same.sum { |one| one[at] } } }
  end

  # Looks at each sample and each row.
  def oracle_placed(rows, all, starts, unit)
    all.sum do |thread, list|
      list.times.count do |time|
        from = starts.fetch(thread)
        rows.select { |one| one[0] == thread }.any? { |one| time > from && time <= (from += one[3] * unit) }
      end
    end
  end

  # Slices are whole ns.
  def assert_shares(row, inside, found, about)
    total = inside.sum { |_, period, _| period }
    cpu = found.group_by(&:last).transform_values { |same| same.sum { |one, _| one[4] } }
    inside.group_by(&:last).each do |tail, same|
      share = Rational(row[4] * same.sum { |_, period, _| period }, total)
      assert_operator (cpu.fetch(tail, 0) - share).abs, :<, 1, about
    end
  end
end
