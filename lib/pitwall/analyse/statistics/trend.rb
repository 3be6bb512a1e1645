# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Does a series rise? Values may be known within bounds only.
    #
    # Test: Mann (1945) and Kendall (1938): of all pairs of points, how many rise and how many fall. A pair counts only
    # where the bounds of its values do not meet, so doubt can hide a trend and never make one.
    # Slope: Theil (1950) and Sen (1968): the median of the slopes of all pairs, with Sen's interval.
    module Trend
      # Up to so many points the distribution of the test is computed exactly; above, the normal approximation is close.
      EXACT = 40
      private_constant :EXACT

      module_function

      # How probable so clear a rise is where the points come in any order.
      # @param bounds [Array<Array(Numeric, Numeric)>] lowest and highest possible value of each point
      #: (Array[[Numeric, Numeric]]) -> Float
      def rise_probability(bounds)
        score = score(bounds)
        n = bounds.size
        return 1.0 if n < 2 || score <= 0
        return exact_probability(n, score) if n <= EXACT

        deviation = Math.sqrt(n * (n - 1) * ((2 * n) + 5) / 18.0)
        1 - Statistics.normal_cdf((score - 1) / deviation)
      end

      # Pairs that surely rise, less those that surely fall.
      #: (Array[[Numeric, Numeric]]) -> Integer
      def score(bounds)
        bounds.each_with_index.sum do |(low, high), at|
          bounds.drop(at + 1).sum { |later_low, later_high| later_low > high ? 1 : later_high < low ? -1 : 0 }
        end
      end

      # @param times [Array<Numeric>] ascending
      # @return [Estimate] of the slope, in units of the values per unit of time; no numbers with fewer than two times
      #: (Array[Numeric], Array[Numeric], ?level: Float) -> Estimate
      def slope(times, values, level: 0.99)
        slopes = slopes(times, values).sort
        n = times.size
        return Estimate.new(nil, nil, nil, level, n) if slopes.empty?

        half = Statistics.normal_quantile((1 + level) / 2) * Math.sqrt(n * (n - 1) * ((2 * n) + 5) / 18.0)
        low = ((slopes.size - half) / 2).floor
        high = ((slopes.size + half) / 2).ceil
        Estimate.new(Statistics.median(slopes), low.negative? ? nil : slopes[low], high < slopes.size ? slopes[high] : nil, level, n)
      end

      def slopes(times, values)
        times.each_index.to_a.combination(2).filter_map do |from, to|
          between = times[to] - times[from]
          (values[to] - values[from]).fdiv(between) if between.positive?
        end
      end
      private_class_method :slopes

      # Of all orders of n values, the part with at least this score. By the number of falling pairs: those of n values are
      # those of n - 1, and 0 to n - 1 more.
      def exact_probability(size, score)
        falling = ((size * (size - 1) / 2) - score) / 2
        counts = [1]
        (2..size).each do |n|
          sum = 0
          counts = Array.new([counts.size + n - 1, falling + 1].min) do |at|
            sum += counts.fetch(at, 0)
            sum -= counts[at - n] if at >= n
            sum
          end
        end
        counts.sum.fdiv((1..size).inject(:*))
      end
      private_class_method :exact_probability
    end
  end
end
