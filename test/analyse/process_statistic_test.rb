# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/record/sample"

class ProcessStatisticTest < Minitest::Test
  P = Pitwall::Analyse::ProcessStatistic

  def sample(**values)
    Pitwall::Record::Sample.new(name: "x", side: "A", block: 0, values: values.transform_keys(&:to_s))
  end

  def test_the_median_where_nothing_is_collected
    assert_equal 2, P.of(sample(wall: [1, 2, 90]), "wall")
    assert_equal 2, P.of(sample(wall: [1, 2, 90], gc_time: [0, 0, 0]), "wall")
    assert_equal 2, P.of(sample(wall: [1, 2, 90], gc_time: [5]), "wall")
    assert_nil P.of(sample(cpu: [1]), "wall")
    assert_equal 5, P.of(sample(gc_time: [1, 5, 9]), "gc_time")
  end

  # Batches of 100. Every second batch has one or two collections of 50. The plain median would be 100, 125 or 150,
  # depending only on the number of collections.
  def test_collections_count_by_their_mean
    few = { wall: [100, 150, 100, 150, 100], gc_time: [0, 50, 0, 50, 0] }
    many = { wall: [150, 100, 150, 100, 150], gc_time: [50, 0, 50, 0, 50] }
    assert_in_delta 120, P.of(sample(**few), "wall")
    assert_in_delta 130, P.of(sample(**many), "wall")
    assert_in_delta 120, P.of(sample(**few, cpu: [100, 150, 100, 150, 100]), "cpu")
  end

  # The core slows down for both in the middle of a batch. Compared with the neighbouring batch, the other process
  # always takes 2% more.
  def test_processes_in_turns_are_compared_batch_by_batch
    slow = [1, 1, 1, 1.5, 1.5, 1.5, 1.4]
    one = sample(wall: slow.map { |factor| 100 * factor })
    other = sample(wall: slow.each_with_index.map { |factor, at| at == 3 ? 102 : 102 * factor })
    assert_in_delta Math.log(102 / 140.0), P.ratio(one, other, "wall"), 1e-9
    [one, other].each { |each| each.notes = [:in_turns] }
    assert_in_delta Math.log(1.02), P.ratio(one, other, "wall"), 1e-9
    assert_in_delta(-Math.log(1.02), P.ratio(other, one, "wall"), 1e-9)
  end

  # Garbage collection does not belong to a batch. Its mean is added to the median of the batches.
  def test_collections_in_turns
    one, other = [[100, 10], [100, 30]].map do |time, collected|
      wall = Array.new(5) { |at| time + (at == 2 ? 5 * collected : 0) }
      gc_time = Array.new(5) { |at| at == 2 ? 5 * collected : 0 }
      sample(wall: wall, gc_time: gc_time).tap { |made| made.notes = [:in_turns] }
    end
    assert_in_delta Math.log(130 / 110.0), P.ratio(one, other, "wall"), 1e-9
    assert_in_delta Math.log(P.of(other, "wall") / P.of(one, "wall")), P.ratio(one, other, "wall"), 1e-9
  end

  # If the numbers of batches differ, or a batch took no time, the processes' numbers are compared.
  def test_processes_that_cannot_be_compared_batch_by_batch
    one, other = [[100, 100, 300], [200, 200]].map { |wall| sample(wall: wall).tap { |made| made.notes = [:in_turns] } }
    assert_in_delta Math.log(2), P.ratio(one, other, "wall"), 1e-9
  end

  # Twice the work takes twice the time, whichever batches have the collections.
  def test_scales
    random = Random.new(3)
    20.times do
      gc = Array.new(9) { random.rand(3) * 40.0 }
      wall = gc.map { |time| time + 100 + random.rand }
      assert_in_delta 2 * P.of(sample(wall: wall, gc_time: gc), "wall"),
                      P.of(sample(wall: wall.map { |time| 2 * time }, gc_time: gc.map { |time| 2 * time }), "wall"),
                      1e-9
    end
  end

  def test_a_trend_is_that_of_the_code
    assert_in_delta 0, P.trend(sample(wall: [100, 100, 150, 150], gc_time: [0, 0, 50, 50]))
    assert_in_delta Math.log(2), P.trend(sample(wall: [100, 100, 200, 200], gc_time: [0, 0, 0, 0]))
    assert_nil P.trend(sample(wall: [1, 2, 3]))
    assert_nil P.trend(sample(wall: [1, 2, 0, 3]))
  end

  def test_what_is_no_time
    [nil, "x", Float::NAN, -1, Complex(1, 2)].each do |odd|
      assert_nil P.trend(sample(wall: [odd, 1, 1, 1], gc_time: [0, 1, 0, 0])), odd.inspect
    end
  end
end
