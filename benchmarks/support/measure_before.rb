# frozen_string_literal: true

module Benchmarks
  # The work without the profiler, then once with it: a tracer leaves Ruby slower behind, so turns are out of the question.
  class MeasureBefore
    def initialize(job, program, profiler)
      @amount = job.fetch(:amount)
      @pairs = job.fetch(:pairs)
      @program = program.new
      @profiler = profiler
    end

    #: () -> Hash  {off: clocks, on: clocks}
    def call
      @program.run(@amount) # caches fill, once
      off = Array.new(@pairs) { spent }.min_by { |clocks| clocks[:cpu_ns] }
      GC.start
      @profiler.start
      on = Clocks.spent { @program.run(@amount) }
      @profiler.stop
      { off: off, on: on }
    end

    private

    def spent
      GC.start
      Clocks.spent { @program.run(@amount) }
    end
  end
end
