# frozen_string_literal: true

module Benchmarks
  # The three clocks of a measured process, read together. Process CPU holds the profilers' own threads too; thread
  # CPU is what the program's main thread paid.
  module Clocks
    CLOCKS = { wall_ns: Process::CLOCK_MONOTONIC, cpu_ns: Process::CLOCK_PROCESS_CPUTIME_ID,
               thread_cpu_ns: Process::CLOCK_THREAD_CPUTIME_ID }.freeze
    private_constant :CLOCKS

    module_function

    #: () -> Hash[Symbol, Integer]
    def read = CLOCKS.transform_values { |clock| Process.clock_gettime(clock, :nanosecond) }

    #: (Hash, Hash) -> Hash
    def since(first, last) = last.to_h { |name, ns| [name, ns - first.fetch(name)] }

    # What the block spent.
    def spent
      before = read
      yield
      since(before, read)
    end

    # CPU time of the processes that this one has waited for, and of theirs.
    #: () -> Integer
    def children_cpu_ns
      times = Process.times
      ((times.cutime + times.cstime) * 1e9).round
    end

    def sum(readings) = readings.reduce { |a, b| a.merge(b) { |_name, x, y| x + y } }
  end
end
