# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/puma_program"

# How much of a real server's time is a request's.
class ServersTimingTest < Minitest::Test
  include PumaProgram

  # What Puma's threads wait for the next request is in none.
  def test_a_server_that_idles
    idle = 0
    with_puma("require 'pitwall'\nPitwall.continuous(dir: 'd', rate: 1000)\n") do
      10.times { |n| get("/slow/#{n}"); idle += 0.2; sleep 0.2 }
    end
    labelled = segments.sum { |segment| segment.tallies.sum { |tally| segment.labels(tally.label_id).empty? ? 0 : tally.cells.each_slice(3).sum(&:first) * segment.unit_ns } } / 1e9
    took = segments.sum { |segment| segment.works.sum(&:total_ns) } / 1e9
    assert_operator labelled, :<, took + idle / 2
    assert_operator labelled, :>, took * 0.3
  end
end
