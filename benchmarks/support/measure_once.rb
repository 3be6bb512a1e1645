# frozen_string_literal: true

module Benchmarks
  # One profile of one run: what it cost to start and to stop, how large the file is, and, for the programs that
  # know the truth, what the profile says of it.
  class MeasureOnce
    def initialize(job, program, profiler)
      @job = job
      @profiler = profiler
      @program = job[:truth] ? program.new(job.fetch(:seconds)) : program.new
    end

    #: () -> Hash
    def call
      GC.start
      answer = nil
      start = Clocks.spent { @profiler.start }
      run = Clocks.spent { answer = work }
      stop = Clocks.spent { @profiler.stop }
      { run: run, start: start, stop: stop, ticks: @profiler.ticks, bytes: bytes,
        **(@job[:truth] ? truth(answer) : {}), **(@job[:sites] ? { sites: @profiler.sites } : {}),
        **(@job[:roots] ? { roots: @profiler.roots, counters: @profiler.counters } : {}),
        **(@job[:leaves] ? { leaves: @profiler.leaves } : {}) }
    end

    private

    def work
      return @program.run if @job[:truth]

      finish = Clocks.read[:wall_ns] + (@job.fetch(:seconds) * 1e9)
      @program.run(@job.fetch(:amount)) while Clocks.read[:wall_ns] < finish
    end

    def bytes = (File.size(@job[:out]) if @job[:out] && File.exist?(@job[:out]))
    def truth(answer) = { truth: answer, totals: @profiler.totals, thread_cpu_ns: @profiler.thread_cpu_ns }
  end
end
