# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    class ProfileChange
      # The noise between recordings, for sides with several recordings each.
      #
      # Compares the means with Welch's test, which does not assume equal variances. From ten runs on, the means are
      # trimmed by 10% at each end (Yuen).
      # A few runs may be equal by chance. So a side's standard error is at least that of its number of samples, if the
      # method had the same share on both sides (binomial).
      class BetweenRuns
        # @param sides [Array<Array<Run>>]
        # @param divisors [Array<Array<Numeric>>] by side and run: divisor of a weight
        #: (Array[Array[Run]], Array[Array[Numeric]]) -> void
        def initialize(sides, divisors)
          @sides = sides
          @divisors = divisors
          @whole = sides.flatten.sum(&:whole)
        end

        # Difference of a method's weight in the result's unit.
        # @param kind [Symbol] :own or :total
        # @return [Difference]
        #: (Symbol, Integer) -> Difference
        def difference(kind, number)
          share = @sides.flatten.sum { |run| run.public_send(kind)[number] }.fdiv(@whole)
          a, b = @sides.each_index.map { |side| part(kind, number, side, share) }
          Difference.between(a, b)
        end

        # Difference of a method's weight in ns per recording.
        #: (Symbol, Integer) -> Difference
        def time(kind, number)
          @times ||= BetweenRuns.new(@sides, @sides.map { |runs| runs.map { 1 } })
          @times.difference(kind, number)
        end

        private

        def part(kind, number, side, share)
          runs = @sides[side]
          values = runs.each_with_index.map { |run, at| run.public_send(kind)[number].fdiv(@divisors[side][at]) }
          parts = Statistics.yuen(values)
          least = runs.each_with_index.sum do |run, at|
            share * (1 - share) / [run.captures, 1].max * run.whole.fdiv(@divisors[side][at])**2
          end
          parts.standard_error = [parts.standard_error, Math.sqrt([least, 0].max) / runs.size].max
          parts
        end
      end
    end
  end
end
