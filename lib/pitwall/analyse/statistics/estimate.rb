# frozen_string_literal: true

module Pitwall
  module Analyse
    # A number with its confidence interval, from `n` independent values. The interval `low`..`high` contains the true
    # value with probability `level` (0.99).
    #
    # Unknown parts are nil, never NaN or infinite, so every estimate can be written as JSON:
    # - no number (ratio of something to nothing): point, low and high are nil
    # - no interval (a single value): low and high are nil
    # - no upper bound: high is nil
    # An exact number has low == high.
    Estimate = Struct.new(:point, :low, :high, :level, :n) do
      # The estimate after a monotone function (`Math.exp`, `1 / x`). A falling function swaps low and high.
      #: () { (Float) -> Float } -> Estimate
      def map
        point, low, high = [self.point, self.low, self.high].map { |value| value && finite(yield(value)) }
        low, high = high, low if low && high && low > high
        self.class.new(point, low, high, level, n)
      end

      # Whether both bounds are known.
      #: () -> bool
      def interval? = !(low.nil? || high.nil?)

      # Whether the number is exact.
      #: () -> bool
      def exact? = !low.nil? && low == high

      private

      def finite(number) = number.finite? ? number : nil
    end
  end
end
