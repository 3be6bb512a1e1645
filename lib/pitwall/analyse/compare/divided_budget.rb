# frozen_string_literal: true

require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/sequential"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Divides the time for several comparisons: says which one gets the next pair. Each gets the fewest pairs for a
    # verdict first. Then the one with the largest doubt gets some more, until all have a verdict.
    #
    # The doubt is the largest change that the interval still allows. So a comparison that has a wide interval comes
    # first, and one whose effect may be large. (Upper confidence bounds: Lai and Robbins 1985.)
    #
    # Each comparison looks at its data at numbers of pairs that were fixed before ({Sequential::Plan}). So it doesn't
    # matter for its false alarms when the others get their pairs.
    class DividedBudget
      # Pairs that a comparison gets in a row.
      ROUND = 4
      # Most pairs of a comparison, in equal shares of the budget.
      SHARES = 4
      private_constant :ROUND

      # One comparison. ratios: of the pairs so far, as logarithms
      Part = Struct.new(:procedure, :ratios, :stopped, :doubt)
      private_constant :Part

      # @param plans name of each comparison → its most pairs
      #: (Hash[String, Integer], comparison: Comparison, base: String, side: String) -> void
      def initialize(plans, comparison:, base:, side:)
        @comparison = comparison
        @base = base
        @parts = plans.transform_values do |pairs|
          procedure = Sequential::Procedure.new(comparison: comparison, plan: Sequential::Plan.new(pairs),
                                                base: base, sides: [side])
          Part.new(procedure, [], false, Float::INFINITY)
        end
        @left = 0
      end

      # The comparison that gets the next pair; nil when all have a verdict, or their most pairs.
      #: () -> String?
      def next
        return @current if @left.positive? && !@parts[@current].stopped

        open = @parts.reject { |_, part| part.stopped }
        @current, part = open.min_by { |_, each| each.ratios.size } || (return)
        if part.ratios.size >= Sequential::MIN_PAIRS
          @current, = open.max_by { |_, each| each.doubt }
          @left = ROUND
        end
        @current
      end

      # Whether every comparison has the fewest pairs for a verdict, or has one already.
      #: () -> bool
      def enough? = @parts.each_value.all? { |part| part.stopped || part.ratios.size >= Sequential::MIN_PAIRS }

      # Adds a pair.
      # @param block [Array<Record::Sample>] a sample of each side
      #: (String, Array[Record::Sample]) -> void
      def add(name, block)
        part = @parts.fetch(name)
        @left -= 1
        part.ratios << ratio(block)
        part.stopped = true if part.procedure.add(block)&.stop?
        part.doubt = doubt(part.ratios) unless part.ratios.size < Sequential::MIN_PAIRS
      end

      # A comparison can't go on.
      #: (String) -> void
      def stop(name) = @parts.fetch(name).stopped = true

      # The effects of all comparisons that have pairs.
      #: () -> Array[Effect]
      def effects
        measured = @parts.each_value.select { |part| part.procedure.pairs.positive? }
        measured.flat_map { |part| part.procedure.finish.effects }
      end

      private

      def ratio(block)
        sides = block.partition { |sample| sample.side == @base }.map(&:first)
        times = sides.map { |sample| sample && ProcessStatistic.of(sample, @comparison.headline) }
        return 0.0 unless times.all? { |time| ProcessStatistic.time?(time) && time.positive? }

        ProcessStatistic.ratio(*sides, @comparison.headline)
      end

      def doubt(ratios)
        parts = Statistics.yuen(ratios)
        reach = -Statistics.student_quantile(0.5 * @comparison.alpha, parts.degrees) * parts.standard_error
        parts.point.abs + reach
      end
    end
  end
end
