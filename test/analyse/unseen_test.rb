# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/record"

# The report says why time has no code.
class UnseenTest < Minitest::Test
  Segment = Struct.new(:frames, :node_frames, :tallies, :unit_ns)

  def notes(wall_of_none)
    frames = { 1 => Pitwall::Record::Frame.new(1, "Shop#sum", "/shop.rb", 1, Pitwall::Record::Frame::RUBY),
               2 => Pitwall::Record::Frame.new(2, "(not sampled)", "", 0, Pitwall::Record::Frame::PITWALL) }
    tally = Pitwall::Record::Tally.new(1, 3)
    tally.add(1, 900, 0, 1)
    tally.add(2, wall_of_none, 0, 0)
    tally.add(3, wall_of_none, 0, 1)
    Pitwall::Analyse::Unseen.notes([Segment.new(frames, [0, 1, 2, 77], [tally], 128)])
  end

  def test_rows_without_a_place_are_explained
    sampled, unresolved = notes(50)
    assert_match(/\A"\(not sampled\)" is 5% of the time: of threads that ended before/, sampled)
    assert_match(/\A"\(unresolved\)" is 5% of the time: the process ended/, unresolved)
  end

  def test_next_to_nothing_needs_no_word
    assert_empty notes(2)
  end
end
