# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/collecting_program"

# The time of collections in the rows is what the statistics of the recording say.
module GCTimingContract
  include CollectingProgram

  def test_marking_and_sweeping_have_their_time
    run_program(ALLOCATING)
    assert_weighed(5_000_000)
  end

  def assert_weighed(slack)
    tree = tree(segment)
    counted = segment.stats.fetch("gc_ns").sum { |_, ns| ns }
    weighed = gc_nodes(tree).sum { |node| tree.selfs(:wall)[node] }
    assert_operator (counted - weighed).abs, :<=, counted * 0.3 + slack, "STAT says #{counted}, rows #{weighed}"
  end
end

class SignalGCTimingTest < Minitest::Test
  include GCTimingContract

  def settings = { mode: "signal" }
end

class OutsideGCTimingTest < Minitest::Test
  include GCTimingContract

  def settings = { mode: "outside" }
end

class SafepointGCTimingTest < Minitest::Test
  include GCTimingContract

  def settings = { mode: "safepoint" }

  # Between two safepoints a collection may follow long work: neither is charged for the other.
  def test_work_without_a_safepoint_before_a_collection
    run_program(<<~'RUBY')
      FACTOR = 7**1_600_000
      record do
        GC.stress = true
        20.times { [FACTOR * FACTOR] }
        GC.stress = false
      end
    RUBY
    assert_sane(segment)
    # Each collection may be a tick off; the work between them is far more.
    assert_weighed(segment.stat("gc_count") * segment.header.interval_ns)
  end
end
