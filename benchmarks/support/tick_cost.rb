# frozen_string_literal: true

require_relative "statistics"

module Benchmarks
  # What one tick of a profiler costs, from readings with and without the profiler in turns (MeasureInterleaved).
  # Included by benchmarks, which have `@context`.
  module TickCost
    # Turns of a trial, which take some tenths of a second each.
    TRIALS = { "deep" => 100_000, "web_like" => 200 }.freeze
    private_constant :TRIALS

    private

    # Amount of work of one turn, which is the same for every case and round. Fitted once to this machine.
    # @param work_ns [Integer] what a turn without a profiler takes
    #: (String, Integer) -> Integer
    def fitted(program, work_ns)
      return 20 if @context.quick?

      (@amounts ||= {})[[program, work_ns]] ||= begin
        trial = TRIALS.fetch(program)
        run = @context.child(profiler: "none", measure: "interleaved", program: program, amount: trial, pairs: 2)
        (trial * work_ns / (run[:off][:cpu_ns] / 2.0)).ceil
      end
    end

    # CPU time with the profiler divided by CPU time without.
    #: (Array[Hash], Symbol) -> Statistics::Estimate
    def ratio_of(runs, clock)
      Statistics.ratio(runs.map { |run| run[:on][clock].fdiv(run[:off][clock]) })
    end

    # µs of CPU time a tick, by the profiler's own count of ticks: a slow one at 100 µs does not get all of them.
    #: (Hash, ?Symbol) -> Float?
    def cost(run, clock = :cpu_ns)
      (run[:on][clock] - run[:off][clock]) / 1e3 / run[:ticks] if run[:ticks]&.positive?
    end

    #: (Array[Float?]) -> Statistics::Estimate?
    def estimate(values) = (Statistics.estimate(values.compact) if values.any?)

    #: (Statistics::Estimate?, Integer) -> String
    def show(estimate, digits)
      return "–" unless estimate
      return format("%.#{digits}f", estimate.point) unless estimate.high.finite?

      format("%.#{digits}f (%.#{digits}f … %.#{digits}f)", estimate.point, estimate.low, estimate.high)
    end
  end
end
