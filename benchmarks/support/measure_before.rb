# frozen_string_literal: true

require_relative "measure_interleaved"

module Benchmarks
  # The work without the profiler, then with it: a tracer leaves Ruby slower behind, so turns are out of the question. Of as many runs
  # of either the fastest counts, as the fastest of several beside a single one would be a ratio of its own.
  class MeasureBefore < MeasureInterleaved
    #: () -> Hash  {off: clocks, on: clocks}
    def call
      @program.run(@amount) # caches fill, once
      %i[off on].to_h { |turn| [turn, Array.new(@pairs) { send(turn) }.min_by { |clocks| clocks[:cpu_ns] }] }
    end
  end
end
