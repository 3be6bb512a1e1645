# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    class ProfileChange
      # The noise between processes: what a method's weight is worth in each run of one side against each of the other.
      #
      # The difference of the means in Welch's way, which doesn't ask that both sides scatter alike; from ten runs on,
      # of the means trimmed by a tenth on each side (Yuen). A few runs may agree by luck: their scatter counts for no less
      # than what so few samples would scatter anyhow, if the method had the same share on both sides (binomial).
      class BetweenRuns
        # @param sides [Array<Array<Run>>]
        # @param divisors [Array<Array<Numeric>>] by side and run: what a weight is divided by
        #: (Array[Array[Run]], Array[Array[Numeric]]) -> void
        def initialize(sides, divisors)
          @sides = sides
          @divisors = divisors
          @whole = sides.flatten.sum(&:whole)
        end

        # @param kind [Symbol] :own or :total
        # @return [Difference]
        #: (Symbol, Integer) -> Difference
        def difference(kind, number)
          share = @sides.flatten.sum { |run| run.public_send(kind)[number] }.fdiv(@whole)
          a, b = @sides.each_index.map { |side| part(kind, number, side, share) }
          Difference.between(a, b)
        end

        # The same in ns a recording.
        #: (Symbol, Integer) -> Difference
        def time(kind, number) = (@times ||= BetweenRuns.new(@sides, @sides.map { |runs| runs.map { 1 } })).difference(kind, number)

        private

        def part(kind, number, side, share)
          runs = @sides[side]
          parts = Statistics.yuen(runs.each_with_index.map { |run, at| run.public_send(kind)[number].fdiv(@divisors[side][at]) })
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
