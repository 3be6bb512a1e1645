# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Tells whether a series rises. Values may be known only within bounds.
    #
    # Test: Mann (1945) and Kendall (1938). It counts the pairs of points that rise and that fall. A pair counts only if
    # the bounds of its values do not overlap. So inaccurate values can hide a trend, but not cause one.
    # Slope: Theil (1950) and Sen (1968). It is the median of the slopes of all pairs, with Sen's interval.
    module Trend
      # Up to so many points, the distribution of the test is exact. Above, it is approximated by a normal distribution.
      EXACT = 40
      private_constant :EXACT

      module_function

      # Probability of such a clear rise if the points were in random order.
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

      # Number of pairs that certainly rise, minus the number of pairs that certainly fall.
      #: (Array[[Numeric, Numeric]]) -> Integer
      def score(bounds)
        bounds.each_with_index.sum do |(low, high), at|
          bounds.drop(at + 1).sum { |later_low, later_high| later_low > high ? 1 : later_high < low ? -1 : 0 }
        end
      end

      # Median slope.
      # @param times [Array<Numeric>] ascending
      # @return [Estimate] in units of the values per unit of time; nil numbers with fewer than two times
      #: (Array[Numeric], Array[Numeric], ?level: Float) -> Estimate
      def slope(times, values, level: 0.99)
        slopes = slopes(times, values).sort
        n = times.size
        return Estimate.new(nil, nil, nil, level, n) if slopes.empty?

        half = Statistics.normal_quantile((1 + level) / 2) * Math.sqrt(n * (n - 1) * ((2 * n) + 5) / 18.0)
        low = ((slopes.size - half) / 2).floor
        high = ((slopes.size + half) / 2).ceil
        Estimate.new(Statistics.median(slopes), low.negative? ? nil : slopes[low],
                     high < slopes.size ? slopes[high] : nil, level, n)
      end

      def slopes(times, values)
        times.each_index.to_a.combination(2).filter_map do |from, to|
          between = times[to] - times[from]
          (values[to] - values[from]).fdiv(between) if between.positive?
        end
      end
      private_class_method :slopes

      # Share of all orders of n values that have at least this score.
      # Counts orders by the number of falling pairs: an n-th value adds 0 to n − 1 of them.
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
