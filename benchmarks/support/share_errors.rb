# frozen_string_literal: true

require_relative "method_totals"
require_relative "statistics"

module Benchmarks
  # The errors of one profiler's shares over several rounds of one truth program.
  class ShareErrors
    # runs: what MeasureOnce answers for a truth program, one a round.
    # whole: the method whose total stands for everything, nil for the whole profile.
    def initialize(runs, whole:)
      @runs = runs
      @whole = (whole || MethodTotals::ALL).to_sym
    end

    # The weights the profiler has: "wall", "cpu".
    #: () -> Array[String]
    def weights = @runs.flat_map { |run| run[:totals].keys }.uniq.map(&:to_s)

    # The section whose mean error is largest, and that error in percentage points, with its sign.
    #: (String) -> [String, Float]
    def largest(weight) = means(weight).max_by { |_section, error| error.abs }

    # { section => mean error over the rounds }
    def means(weight)
      rounds = by_round(weight)
      rounds.first.keys.to_h do |section|
        [section.to_s, Statistics.mean(rounds.map { |errors| errors.fetch(section) })]
      end
    end

    # By round: the largest error of any section.
    #: (String) -> Array[Float]
    def worst_of_rounds(weight) = by_round(weight).map { |errors| errors.values.map(&:abs).max }

    # How far the worst thread's CPU weight is from its own clock, in percent; nil where the profiler has none.
    #: () -> Float?
    def thread_cpu_percent
      @runs.flat_map do |run|
        next [] unless run[:thread_cpu_ns]

        run[:truth][:threads].map do |thread|
          ((run[:thread_cpu_ns].fetch(:"#{thread[:native_thread_id]}", 0).fdiv(thread[:cpu_ns]) - 1) * 100).abs
        end
      end.max
    end

    def to_h
      { means: weights.to_h { |weight| [weight, means(weight)] }, thread_cpu_percent: thread_cpu_percent,
        rounds: weights.to_h { |weight| [weight, by_round(weight)] } }
    end

    private

    # [{ section => error in points }, …]
    def by_round(weight)
      @by_round ||= {}
      @by_round[weight] ||= @runs.map do |run|
        errors(run[:totals].fetch(weight.to_sym), run[:truth], :"#{weight}_ns")
      end
    end

    def errors(totals, truth, clock)
      everything = truth[:threads].sum { |thread| thread[clock] }
      sections = truth[:threads].map { |thread| thread[:sections] }.reduce(:merge)
      sections.to_h do |name, spent|
        measured = totals.fetch(@whole, 0).zero? ? 0.0 : totals.fetch(name, 0).fdiv(totals[@whole])
        [name, (measured - spent[clock].fdiv(everything)) * 100]
      end
    end
  end
end
