# frozen_string_literal: true

require_relative "measure_interleaved"

module Benchmarks
  # Does the work without the profiler, then with it. Turns are not possible: Ruby stays slower after a tracer stops.
  # Both kinds have the same number of runs, and the fastest run of each counts. The fastest of several divided by a
  # single run would be biased.
  class MeasureBefore < MeasureInterleaved
    #: () -> Hash  {off: clocks, on: clocks}
    def call
      @program.run(@amount) # caches fill, once
      %i[off on].to_h { |turn| [turn, Array.new(@pairs) { send(turn) }.min_by { |clocks| clocks[:cpu_ns] }] }
    end
  end
end
