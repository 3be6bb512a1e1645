# frozen_string_literal: true

require "pitwall/analyse/statistics/effect"
require "pitwall/record/sample"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Effect on counted instructions or file-system calls. Such counts hardly differ between runs. So three pairs are
    # enough, where times need hundreds.
    # The interval is Student's of the untrimmed mean of ln(B/A), from these few pairs.
    module Instructions
      METRIC = "instructions"

      # Effect of one side relative to the base.
      # @param a [Array<Float>] count of each round of the base
      # @param b [Array<Float>] count of each round of the other side, in the same order
      # @return [Effect] undecided with a reason if fewer than two rounds gave a count
      #: (
      #    Array[Float], Array[Float], name: String, base: String, side: String, ?metric: String, ?alpha: Float,
      #    ?margin: Float
      #  ) -> Effect
      def self.effect(a, b, name:, base:, side:, metric: METRIC, alpha: 0.01, margin: 0.01)
        exact = a.size > 1 && [a, b].all? { |counts| counts.uniq.size == 1 }
        own = { name: name, base: base, side: side, metric: metric, unit: Record::METRICS.fetch(metric).unit,
                exact: exact, pairs: a.size, margin: margin, below_margin: false }
        return zero(own, a.first, b.first, alpha) if own[:exact] && (a.first.zero? || b.first.zero?)

        return difference(own, a, b, alpha) if metric.start_with?("retained") && some_zero?(a, b)

        counts = a + b
        usable = a.size > 1 && a.size == b.size &&
                 counts.all? { |count| count.is_a?(Numeric) && count.positive? && count.finite? }
        unless usable
          return Effect.new(**own, ratio: Estimate.new(nil, nil, nil, 1 - alpha, a.size), verdict: :undecided,
                                   reason: "too few runs could be counted")
        end

        parts = Statistics.yuen(a.zip(b).map { |before, after| Math.log(after / before) }, trim: 0)
        ratio = Statistics.interval(parts, level: 1 - alpha).map { |logarithm| Math.exp(logarithm) }
        verdict = verdict(ratio, margin)
        below_margin = %i[more fewer].include?(verdict) && (ratio.point - 1).abs < margin
        Effect.new(**own, a: Statistics.median(a), b: Statistics.median(b), ratio: ratio, verdict: verdict,
                          smallest_detectable: (ratio.high - ratio.low) / 2, below_margin: below_margin)
      end

      # Exact counts of which one is 0. There is no ratio of something to 0.
      def self.zero(own, before, after, alpha)
        value = before == after ? 1.0 : nil
        ratio = Estimate.new(value, value, value, 1 - alpha, own[:pairs])
        verdict = before == after ? :same : (after > before ? :more : :fewer)
        Effect.new(**own, a: before, b: after, ratio: ratio, verdict: verdict, smallest_detectable: nil)
      end
      private_class_method :zero

      # Whether some counts are 0, so that they have no ratio. Numbers of retained objects may be 0.
      def self.some_zero?(a, b)
        return false unless a.size > 1 && a.size == b.size

        (a + b).all? { |count| count.is_a?(Numeric) && count.finite? } && !(a + b).all?(&:positive?)
      end
      private_class_method :some_zero?

      # Effect by the interval of the difference.
      def self.difference(own, before, after, alpha)
        parts = Statistics.yuen(before.zip(after).map { |a, b| b - a }, trim: 0)
        change = Statistics.interval(parts, level: 1 - alpha)
        verdict = change.low.positive? ? :more : change.high.negative? ? :fewer : :undecided
        reason = "the counts of the runs differ too much" if verdict == :undecided
        Effect.new(**own, a: Statistics.median(before), b: Statistics.median(after),
                          ratio: Estimate.new(nil, nil, nil, 1 - alpha, own[:pairs]), verdict: verdict,
                          smallest_detectable: nil, reason: reason)
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
