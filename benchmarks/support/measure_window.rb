# frozen_string_literal: true

module Benchmarks
  # One profile of one run, and when it began and ended: a witness outside of the process counts in between.
  class MeasureWindow
    #: (Hash, Class, NoneCase) -> void
    def initialize(job, program, profiler)
      @job = job
      @program = program.new
      @profiler = profiler
    end

    #: () -> Hash
    def call
      @program.run(@job.fetch(:amount)) # caches fill, once
      @profiler.start
      from = Clocks.read[:wall_ns]
      finish = from + (@job.fetch(:seconds) * 1e9)
      @program.run(@job.fetch(:amount)) while Clocks.read[:wall_ns] < finish
      to = Clocks.read[:wall_ns]
      @profiler.stop
      { from_ns: from, to_ns: to, tid: Process.pid } # on Linux the main thread's id is the process's
    end
  end
end
