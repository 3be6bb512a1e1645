# frozen_string_literal: true

module Benchmarks
  # The little statistics the benchmarks need until Pitwall's own comparison takes over: a trimmed mean of paired differences
  # with its interval (Yuen), which a few disturbed rounds do not move.
  module Statistics
    Estimate = Struct.new(:point, :low, :high, :n) do
      # The same interval on another scale, such as Math.exp of log ratios.
      def map = self.class.new(yield(point), yield(low), yield(high), n)
    end

    LEVEL = 0.95
    TRIM = 0.1

    module_function

    #: (Array[Numeric]) -> Float
    def mean(values) = values.sum.fdiv(values.size)

    #: (Array[Numeric]) -> Float
    def median(values)
      sorted = values.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2.0
    end

    # Mean without the lowest and highest tenth, and its 95% interval from the winsorised deviation.
    # With fewer than three values there is no interval: low and high are infinite.
    #: (Array[Numeric]) -> Estimate
    def estimate(values, trim: TRIM)
      sorted = values.map(&:to_f).sort
      n = sorted.size
      cut = (n * trim).floor
      kept = sorted[cut, n - (2 * cut)]
      point = mean(kept)
      return Estimate.new(point, -Float::INFINITY, Float::INFINITY, n) if kept.size < 3

      winsorised = sorted.map { |value| value.clamp(kept.first, kept.last) }
      centre = mean(winsorised)
      spread = winsorised.sum { |value| (value - centre)**2 }
      error = Math.sqrt(spread / (kept.size * (kept.size - 1)))
      half = t_quantile(kept.size - 1) * error
      Estimate.new(point, point - half, point + half, n)
    end

    # Two-sided 95% quantile of Student's t (Cornish–Fisher from the normal one; right to 0.5% from four degrees on).
    #: (Integer) -> Float
    def t_quantile(degrees)
      return { 1 => 12.706, 2 => 4.303, 3 => 3.182 }.fetch(degrees) if degrees <= 3

      z = 1.959964
      z + ((z**3 + z) / (4.0 * degrees)) + (((5 * z**5) + (16 * z**3) + (3 * z)) / (96.0 * degrees**2)) +
        (((3 * z**7) + (19 * z**5) + (17 * z**3) - (15 * z)) / (384.0 * degrees**3))
    end
  end
end
