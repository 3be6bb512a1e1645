# frozen_string_literal: true

module Benchmarks
  # The same work without a profiler and with each of several, in turns of one process and in random order. What differs
  # between processes (layout, hash seeds) is the same for all of them.
  class MeasureTurns
    #: (Hash, Class, NoneCase) -> void
    def initialize(job, program, _none)
      @amount = job.fetch(:amount)
      @passes = job.fetch(:passes)
      @program = program.new
      @profilers = job.fetch(:cases).to_h do |name|
        [name, Profilers.load(name, interval_ns: job.fetch(:interval_ns), out: "#{job.fetch(:out)}-#{name}")]
      end
      @job = job
    end

    # @return [Hash] case => {off: clocks, on: clocks, ticks:}, sums of all passes
    #: () -> Hash
    def call
      @program.run(@amount) # caches fill, once
      passes = Array.new(@passes) { ["off", *@profilers.keys].shuffle.to_h { |name| [name, turn(@profilers[name])] } }
      sums = passes.first.keys.to_h { |name| [name, sum(passes.map { |pass| pass.fetch(name) })] }
      @profilers.to_h { |name, _| [name, { off: sums["off"].first, on: sums[name].first, ticks: sums[name].last }] }
    ensure
      files = @profilers.keys.map { |name| "#{@job.fetch(:out)}-#{name}" }
      files.each { |file| File.delete(file) if File.exist?(file) }
    end

    private

    # @return [Array] clocks, ticks
    def turn(profiler)
      GC.start # all begin with the same heap
      profiler&.start
      spent = Clocks.spent { @program.run(@amount) }
      profiler&.stop
      [spent, profiler&.ticks || 0]
    end

    def sum(turns) = [Clocks.sum(turns.map(&:first)), turns.sum(&:last)]
  end
end
