# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"

# A place's share of the collector's work, computed by hand, and the prediction from it.
class GCWorkTest < Minitest::Test
  Work = Pitwall::Analyse::GCWork
  MAIN = ["Object#main", "/app/a.rb", 1, 3].freeze
  COPY = ["Task#copy", "/app/task.rb", 10, 12].freeze

  # Four minor runs of 1, 3, 3 and 3 ms, and a major run of 10 ms with 1,000 living objects. Pitwall's own run is last.
  # Site 5 is the place's.
  def segment(own: true, mine: { work: [12_000_000, 300, 800, 2_000, 10], freed: 90 },
              other: { work: [8_000_000, 100, 100, 500, 0], freed: 60 })
    bytes = RecordingBuilder.build do |segment|
      segment.row stack: [MAIN, COPY], wall: 500_000, cpu: 500_000, captures: 500
      segment.row stack: [MAIN], wall: 500_000, cpu: 500_000, captures: 500
      [1, 3, 3, 3].each_with_index do |ms, at|
        segment.collection(start: at, marking: ms * 1_000_000, sweeping: 2_000_000, living: 1_000)
      end
      segment.collection(start: 9, marking: 10_000_000, sweeping: 2_000_000, living: 1_000, majors: 1)
      segment.collection(start: 10, marking: 50_000_000, living: 1_000, majors: 1, cause: 3) if own
      [[5, [MAIN, COPY], mine], [6, [MAIN], other]].each do |id, stack, site|
        segment.site id, stack: stack, counters: [100, 0, site[:freed], 0, 0, 0, 4_000, 4_000, 0, 1_000_000],
                     work: site[:work]
      end
    end
    RandomRecording.read(bytes).segments.first
  end

  def shares(segment = self.segment) = Work.shares([[segment, segment.sites.select { |site| site.id == 5 }]])

  def test_parts
    found = shares
    assert_in_delta 12.0 / 20, found.started
    # All of a major run is for living objects. Of minor runs, the time beyond the cheapest is for young objects: 3/4 of
    # 6 ms.
    assert_in_delta (0.8 * 10 + 0.75 * 6) / 20, found.living
    assert_in_delta 5_000.0 / (5_000 - 2_000), found.heap_ratio
    assert_in_delta (90 + 2.0 * 10) / (90 + 2.0 * 10 + 60), found.freed
  end

  def test_bounds_are_in_order
    found = shares
    low, high = found.marking
    left = (1 - found.started) * (1 - found.living)
    assert_in_delta 1 - left, high
    assert_in_delta 1 - left * found.heap_ratio, low
    assert_equal [found.started, found.freed].minmax, found.sweeping
    assert_operator low, :<=, high
  end

  # With only major runs, the remaining work is that of other sites, whatever the heap's size.
  def test_with_major_runs_alone_a_smaller_heap_cancels
    found = Work::Shares.new(0.6, 0.5, 1 / (1 - 0.5), 0.5)
    assert_in_delta 0.6, found.marking.first
  end

  def test_it_is_unknown_in_older_recordings_and_in_bursts
    assert_nil shares(segment(mine: { work: nil, freed: 9 }))
  end

  def test_pitwall_s_own_run_is_left_out
    assert_equal shares.to_a, shares(segment(own: false)).to_a
  end

  def test_a_prediction_goes_by_it_and_doubts_the_heap
    cost = Pitwall::Analyse::GCCost.new([segment(own: false)])
    prediction = cost.predict("copy")
    middle = ->(ends) { ends.sum / 2 }
    expected = middle.call(shares.marking) * 20e6 + middle.call(shares.sweeping) * 10e6
    assert_in_delta expected, prediction.gc.point, 1
    assert_operator prediction.doubts[:heap], :>, 0
    assert_in_delta shares.started * 5, prediction.runs.point, 0.001
    assert_operator prediction.gc.high, :<=, 30e6 * 1.5
  end
end
