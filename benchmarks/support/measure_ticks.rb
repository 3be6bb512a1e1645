# frozen_string_literal: true

module Benchmarks
  # CPU time of Pitwall's own threads while a program stands still or computes, and how often they looked.
  class MeasureTicks
    def initialize(job, program, profiler)
      @job = job
      @profiler = profiler
      @program = program.new(job.fetch(:sleepers), job.fetch(:busy))
    end

    #: () -> Hash
    def call
      @profiler.start
      @program.run(0.2) # names, first buffers
      before = own
      spent = Clocks.spent { @program.run(@job.fetch(:seconds)) }
      own_ns = own - before
      @profiler.stop
      due = spent[:wall_ns].fdiv(@job.fetch(:interval_ns))
      # Late ticks are counted over the whole recording.
      looks = due * (1 - (@profiler.counters.fetch(:missed_ticks) / (due * (1 + (0.2 / @job.fetch(:seconds))))))
      { own_ns: own_ns, due: due.round, looks: looks.round }
    end

    private

    # Of the threads by their names: none of them is the program's.
    def own
      Dir["/proc/self/task/*"].sum do |task|
        File.read("#{task}/comm").start_with?("pitwall") ? File.read("#{task}/schedstat").to_i : 0
      end
    end
  end
end
