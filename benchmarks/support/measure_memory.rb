# frozen_string_literal: true

module Benchmarks
  # The most that was ever resident, in bytes, by a process that makes so many objects with the profiler running.
  class MeasureMemory
    def initialize(job, program, profiler)
      @job = job
      @program = program.new
      @profiler = profiler
    end

    #: () -> Hash  {running:, stopped:} in bytes
    def call
      @profiler.start
      @program.make(@job.fetch(:kind), @job.fetch(:objects))
      running = peak
      GC.start if @job[:collect] # Pitwall ends with one, to find out what is retained
      @profiler.stop
      { running: running, stopped: peak }
    end

    private

    def peak = File.foreach("/proc/self/status").find { |line| line.start_with?("VmHWM:") }[/\d+/].to_i * 1024
  end
end
