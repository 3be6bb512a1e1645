# frozen_string_literal: true

module Benchmarks
  # The same work with and without the profiler, in turns and in random order within each pair: what differs between
  # processes (layout, hash seeds) and what drifts (another tenant of the machine) cancels. The times exclude starting
  # and stopping.
  class MeasureInterleaved
    def initialize(job, program, profiler)
      @amount = job.fetch(:amount)
      @pairs = job.fetch(:pairs)
      @program = program.new
      @profiler = profiler
      @ticks = nil
    end

    #: () -> Hash  {off: clocks, on: clocks, ticks:}
    def call
      @program.run(@amount) # caches fill, once
      readings = Array.new(@pairs) { %i[off on].shuffle.to_h { |turn| [turn, send(turn)] } }
      { **%i[off on].to_h { |turn| [turn, Clocks.sum(readings.map { |pair| pair.fetch(turn) })] }, ticks: @ticks }
    end

    private

    # Both begin with the same heap.
    def off
      GC.start
      Clocks.spent { @program.run(@amount) }
    end

    def on
      GC.start
      @profiler.start
      spent = Clocks.spent { @program.run(@amount) }
      @profiler.stop
      @ticks = (@ticks || 0) + @profiler.ticks if @profiler.ticks
      spent
    end
  end
end
