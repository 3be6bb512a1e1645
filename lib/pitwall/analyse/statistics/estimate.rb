# frozen_string_literal: true

module Pitwall
  module Analyse
    # A number with its doubt: `point`, and the interval `low`..`high` that covers the truth with probability `level`
    # (0.99), from `n` independent values. What cannot be known is nil, never NaN or infinite, so that every estimate can be
    # written as JSON: all three where there is no number (the ratio of something to nothing), low and high where there is no
    # interval (a single value), high alone where the interval has no upper end. An exact number has low == high.
    Estimate = Struct.new(:point, :low, :high, :level, :n) do
      # The same through a monotone function (`Math.exp`, `1 / x`): a falling one swaps the ends of the interval.
      #: () { (Float) -> Float } -> Estimate
      def map
        point, low, high = [self.point, self.low, self.high].map { |value| value && finite(yield(value)) }
        low, high = high, low if low && high && low > high
        self.class.new(point, low, high, level, n)
      end

      #: () -> bool
      def interval? = !(low.nil? || high.nil?)

      #: () -> bool
      def exact? = !low.nil? && low == high

      private

      def finite(number) = number.finite? ? number : nil
    end
  end
end
