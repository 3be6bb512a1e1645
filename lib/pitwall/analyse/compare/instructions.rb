# frozen_string_literal: true

require "pitwall/analyse/statistics/effect"
require "pitwall/record/sample"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # The effect on instructions (or file-system calls) that were counted in a few runs of each side. Such counts hardly differ between runs, so three pairs decide
    # what a clock needs hundreds for: the interval is Student's on ln(B/A), untrimmed, and takes its doubt from those few.
    module Instructions
      METRIC = "instructions"

      # @param a [Array<Float>] of each round; b: the same of the other side, in the same order
      # @return [Effect] undecided with a reason where less than two rounds gave a count
      #: (Array[Float], Array[Float], name: String, base: String, side: String, ?metric: String, ?alpha: Float, ?margin: Float) -> Effect
      def self.effect(a, b, name:, base:, side:, metric: METRIC, alpha: 0.01, margin: 0.01)
        exact = a.size > 1 && [a, b].all? { |counts| counts.uniq.size == 1 }
        own = { name: name, base: base, side: side, metric: metric, unit: Record::METRICS.fetch(metric).unit, exact: exact, pairs: a.size, margin: margin, below_margin: false }
        return nothing(own, a.first, b.first, alpha) if own[:exact] && (a.first.zero? || b.first.zero?)

        return difference(own, a, b, alpha) if metric.start_with?("retained") && zeros?(a, b)

        usable = a.size > 1 && a.size == b.size && (a + b).all? { |count| count.is_a?(Numeric) && count.positive? && count.finite? }
        return Effect.new(**own, ratio: Estimate.new(nil, nil, nil, 1 - alpha, a.size), verdict: :undecided, reason: "too few runs could be counted") unless usable

        parts = Statistics.yuen(a.zip(b).map { |before, after| Math.log(after / before) }, trim: 0)
        ratio = Statistics.interval(parts, level: 1 - alpha).map { |logarithm| Math.exp(logarithm) }
        verdict = verdict(ratio, margin)
        Effect.new(**own, a: Statistics.median(a), b: Statistics.median(b), ratio: ratio, verdict: verdict,
                          smallest_detectable: (ratio.high - ratio.low) / 2, below_margin: %i[more fewer].include?(verdict) && (ratio.point - 1).abs < margin)
      end

      # Of nothing there is no ratio.
      def self.nothing(own, before, after, alpha)
        ratio = before == after ? Estimate.new(1.0, 1.0, 1.0, 1 - alpha, own[:pairs]) : Estimate.new(nil, nil, nil, 1 - alpha, own[:pairs])
        verdict = before == after ? :same : (after > before ? :more : :fewer)
        Effect.new(**own, a: before, b: after, ratio: ratio, verdict: verdict, smallest_detectable: nil)
      end
      private_class_method :nothing

      # Counts of which some are 0, as those of what an iteration retains may be: there is no ratio either.
      def self.zeros?(a, b) = a.size > 1 && a.size == b.size && (a + b).all? { |count| count.is_a?(Numeric) && count.finite? } && !(a + b).all?(&:positive?)
      private_class_method :zeros?

      def self.difference(own, before, after, alpha)
        change = Statistics.interval(Statistics.yuen(before.zip(after).map { |a, b| b - a }, trim: 0), level: 1 - alpha)
        verdict = change.low.positive? ? :more : change.high.negative? ? :fewer : :undecided
        Effect.new(**own, a: Statistics.median(before), b: Statistics.median(after), ratio: Estimate.new(nil, nil, nil, 1 - alpha, own[:pairs]),
                          verdict: verdict, smallest_detectable: nil, reason: ("the counts of the runs differ too much" if verdict == :undecided))
      end
      private_class_method :difference

      def self.verdict(ratio, margin)
        return :more if ratio.low > 1
        return :fewer if ratio.high < 1

        ratio.low > 1 - margin && ratio.high < 1 + margin ? :same : :undecided
      end
      private_class_method :verdict
    end
  end
end
