# frozen_string_literal: true

module Benchmarks
  # What a call of each known method costs, by the CPU clock, without the tracer; then all of them under it, in turns.
  # A shared machine's speed changes from one second to the next by more than a tracer's error. A method that hardly
  # depends on the tracer says by how much.
  class MeasureKnown
    TURNS = 15
    private_constant :TURNS

    def initialize(job, program, profiler)
      @program = program.new
      @names = program::NAMES
      @unrolled = program::UNROLLED
      @reference = program::REFERENCE
      @profiler = profiler
      @ns = job.fetch(:ns) # a method's work in one turn
    end

    # Returns {plain: {name: ns a call}, calls: {name: count}, slower: ratio}. The ratio says how many times as slow the
    # machine was under the tracer.
    #: () -> Hash
    def call
      @repeats = @names.to_h { |name| [name, repeats(name)] }
      plain = take_turns
      @profiler.start
      traced = take_turns
      @profiler.stop
      calls = @repeats.transform_values { |count| count * @unrolled * TURNS }
      { plain: plain.to_h { |name, ns| [name, ns.fdiv(calls[name])] }, calls: calls,
        slower: traced[@reference].fdiv(plain[@reference]) }
    end

    private

    # CPU ns of all calls, by name.
    def take_turns
      sums = @names.to_h { |name| [name, 0] }
      TURNS.times { @names.each { |name| sums[name] += spent(name, @repeats[name]) } }
      sums
    end

    def repeats(name)
      spent(name, 3)
      [(@ns / (spent(name, 5) / 5.0)).ceil, 3].max
    end

    def spent(name, turns)
      from = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      @program.call(name, turns)
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - from
    end
  end
end
