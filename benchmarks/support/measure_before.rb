# frozen_string_literal: true

require_relative "measure_interleaved"

module Benchmarks
  # The work without the profiler, then once with it: a tracer leaves Ruby slower behind, so turns are out of the question.
  class MeasureBefore < MeasureInterleaved
    #: () -> Hash  {off: clocks, on: clocks}
    def call
      @program.run(@amount) # caches fill, once
      { off: Array.new(@pairs) { off }.min_by { |clocks| clocks[:cpu_ns] }, on: on }
    end
  end
end
