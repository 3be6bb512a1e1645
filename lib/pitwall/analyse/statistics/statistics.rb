# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"

module Pitwall
  module Analyse
    # Basic statistics in plain Ruby.
    # Distribution functions give lower tails, accurate to many digits down to 1e-13 and below. The first look of a
    # sequential comparison needs 6e-12. A probability near 1 cannot be written that exactly, so callers use the other
    # tail: `-student_quantile(small, degrees)`.
    module Statistics
      # Share of the values that a trimmed mean leaves out at each end.
      TRIM = 0.1

      # Parts of an interval: `point` ± quantile × `standard_error`, with the quantile of Student's t with `degrees` of
      # freedom. n: number of values.
      Parts = Struct.new(:point, :standard_error, :degrees, :n)

      module_function

      # Arithmetic mean.
      #: (Array[Numeric]) -> Float
      def mean(values) = values.sum(0.0) / values.size

      # Median.
      # @raise [ArgumentError] without values
      #: (Array[Numeric]) -> Float
      def median(values) = quantile(values, 0.5)

      # Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, definition 7).
      # @param fraction [Float] 0.0 to 1.0
      # @raise [ArgumentError] without values
      #: (Array[Numeric], Float) -> Float
      def quantile(values, fraction)
        raise ArgumentError, "no values" if values.empty?
        return values.first.to_f if values.size == 1

        sorted = values.sort
        position = fraction * (sorted.size - 1)
        below = position.floor
        above = [below + 1, sorted.size - 1].min
        (sorted[below] + (position - below) * (sorted[above] - sorted[below])).to_f
      end

      # Fences: the quartiles ∓ 3 × the interquartile range. Values beyond them are "far out" (Tukey 1977).
      #: (Array[Numeric]) -> [Float, Float]
      def far_out_fences(values)
        first = quantile(values, 0.25)
        third = quantile(values, 0.75)
        [first - 3 * (third - first), third + 3 * (third - first)]
      end

      # Values beyond the fences.
      #: (Array[Numeric]) -> Array[Numeric]
      def far_out(values)
        return [] if values.empty?

        low, high = far_out_fences(values)
        values.select { |value| value < low || value > high }
      end

      # Mean without the largest and smallest values.
      #: (Array[Numeric], ?trim: Float) -> Float
      def trimmed_mean(values, trim: TRIM)
        cut = (trim * values.size).floor
        mean(values.sort[cut...values.size - cut])
      end

      # Trimmed mean and its standard error. One outlier among ten values has no influence on them.
      # With h values left after trimming, the squared standard error is the winsorised values' sum of squares over
      # h(h − 1), with h − 1 degrees of freedom (Tukey and McLaughlin 1963; Yuen 1974).
      # standard_error and degrees are nil for a single value.
      #: (Array[Numeric], ?trim: Float) -> Parts
      def yuen(values, trim: TRIM)
        sorted = values.sort
        cut = (trim * sorted.size).floor
        kept = sorted[cut...sorted.size - cut]
        point = mean(kept)
        return Parts.new(point, nil, nil, sorted.size) if kept.size < 2

        winsorised = kept + [kept.first, kept.last] * cut
        centre = mean(winsorised)
        squares = winsorised.sum(0.0) { |value| (value - centre)**2 }
        Parts.new(point, Math.sqrt(squares / (kept.size * (kept.size - 1.0))), kept.size - 1, sorted.size)
      end

      # Interval of a trimmed mean. With `trim: 0` it is Student's interval of the mean.
      # @param parts [Parts, Array<Numeric>] result of `yuen`, or values
      #: (Parts | Array[Numeric], level: Float, ?trim: Float) -> Estimate
      def interval(parts, level:, trim: TRIM)
        parts = yuen(parts, trim: trim) if parts.is_a?(Array)
        return Estimate.new(parts.point, nil, nil, level, parts.n) unless parts.standard_error

        reach = -student_quantile((1 - level) / 2, parts.degrees) * parts.standard_error
        Estimate.new(parts.point, parts.point - reach, parts.point + reach, level, parts.n)
      end

      # Median with an interval that assumes no distribution: the k-th smallest and the k-th largest value.
      # k comes from the binomial probability that fewer than k of n values lie below the median (Conover 1999, 3.2).
      # With too few values for the level, the interval contains all values, and its level is the one that they reach.
      #: (Array[Numeric], level: Float) -> Estimate
      def median_interval(values, level:)
        sorted = values.sort
        n = sorted.size
        point = median(sorted)
        return Estimate.new(point, nil, nil, level, n) if n < 2

        alpha = 1 - level
        tail = term = 0.5**n # probability of at most `rank` values below the median
        return Estimate.new(point, sorted.first.to_f, sorted.last.to_f, 1 - 2 * tail, n) if 2 * tail > alpha

        rank = 0
        while 2 * rank + 2 < n
          term *= (n - rank).fdiv(rank + 1)
          break if 2 * (tail + term) > alpha

          tail += term
          rank += 1
        end
        Estimate.new(point, sorted[rank].to_f, sorted[-1 - rank].to_f, level, n)
      end

      # The alpha that each of several p-values is compared with, so that the probability of any false rejection is at
      # most `alpha` (Holm 1979).
      # The smallest p-value is compared with alpha / m, the next with alpha / (m − 1) and so on. After the first value
      # that is not rejected, all others are compared with the same alpha as that value.
      # A block may replace the test `p <= share`. It gets the index and the share, and returns whether to reject.
      #: (Array[Float], alpha: Float) ?{ (Integer, Float) -> bool } -> Array[Float]
      def holm(p_values, alpha:)
        shares = Array.new(p_values.size)
        remaining = p_values.size
        rejecting = true
        p_values.each_index.sort_by { |index| [p_values[index], index] }.each do |index|
          shares[index] = alpha / remaining
          rejecting &&= block_given? ? yield(index, shares[index]) : p_values[index] <= shares[index]
          remaining -= 1 if rejecting
        end
        shares
      end

      # Lower tail of the standard normal distribution.
      #: (Float) -> Float
      def normal_cdf(value) = 0.5 * Math.erfc(-value / Math.sqrt(2))

      # Quantile of the standard normal distribution.
      # The start is a rational approximation (Abramowitz and Stegun 26.2.23, error below 0.0005). Halley's method then
      # makes it exact.
      # @raise [ArgumentError] if the argument is no probability
      #: (Float) -> Float
      def normal_quantile(probability)
        return normal_end(probability) unless probability.positive? && probability < 1
        return -normal_quantile(1 - probability) if probability > 0.5

        root = Math.sqrt(-2 * Math.log(probability))
        numerator = 2.515517 + root * (0.802853 + root * 0.010328)
        denominator = 1 + root * (1.432788 + root * (0.189269 + root * 0.001308))
        value = numerator / denominator - root
        3.times do
          error = (normal_cdf(value) - probability) / normal_density(value)
          value -= error / (1 + 0.5 * error * value)
        end
        value
      end

      # Density of the standard normal distribution.
      #: (Float) -> Float
      def normal_density(value) = Math.exp(-0.5 * value * value) / Math.sqrt(2 * Math::PI)

      # Lower tail of Student's t. The tail at −|t| is half of the regularised incomplete beta function I(ν/2, 1/2) at
      # ν/(ν + t²) (Abramowitz and Stegun 26.7.1).
      #: (Float, Integer) -> Float
      def student_cdf(value, degrees)
        return value.positive? ? 1.0 : 0.0 if value.infinite?

        square = value * value
        tail = 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + square), square / (degrees + square))
        value.positive? ? 1 - tail : tail
      end

      # Quantile of Student's t. Newton's method on ln(probability) as a function of ln(−t), which is almost linear in
      # the tail. Steps that leave the bracket are replaced by bisection.
      # @raise [ArgumentError] if the argument is no probability
      #: (Float, Integer) -> Float
      def student_quantile(probability, degrees)
        return normal_end(probability) unless probability.positive? && probability < 1
        return -student_quantile(1 - probability, degrees) if probability > 0.5
        return 0.0 unless probability < 0.5

        target = Math.log(probability)
        # |t| is larger than the normal quantile, and smaller than Cauchy's, whose tail is 1 / (π t).
        low = -normal_quantile(probability)
        high = [1 / Math.tan(Math::PI * probability), low].max * (1 + 1e-9)
        reach = low * Math.sqrt(1 + (low * low + 1) / (2.0 * degrees)) # about the first term of Cornish-Fisher
        reach = Math.sqrt(low * high) unless reach.between?(low, high)
        100.times do
          tail = student_cdf(-reach, degrees)
          error = Math.log(tail) - target
          error.positive? ? low = reach : high = reach
          step = error * tail / student_density(reach, degrees)
          following = reach * Math.exp(step / reach)
          return -following if (following - reach).abs <= 1e-8 * reach # the error of a step is the previous one squared

          reach = following > low && following < high ? following : 0.5 * (low + high)
        end
        -reach
      end

      # Density of Student's t.
      #: (Float, Integer) -> Float
      def student_density(value, degrees)
        scale = log_gamma(0.5 * (degrees + 1)) - log_gamma(0.5 * degrees) - 0.5 * Math.log(degrees * Math::PI)
        Math.exp(scale - 0.5 * (degrees + 1) * Math.log(1 + value * value / degrees))
      end

      # Regularised incomplete beta function I(a, b) at x, by its continued fraction (Abramowitz and Stegun 26.5.8) with
      # Lentz's algorithm. Uses the side of the mean where the fraction converges fast.
      # @param rest [Float] 1 − x; a parameter because the difference would lose digits
      #: (Float, Float, Float, Float) -> Float
      def incomplete_beta(a, b, x, rest)
        return 0.0 if x <= 0
        return 1.0 if rest <= 0
        return 1 - incomplete_beta(b, a, rest, x) if x > (a + 1) / (a + b + 2)

        front = Math.exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * Math.log(x) + b * Math.log(rest))
        front / (a * beta_fraction(a, b, x))
      end

      # Continued fraction 1 + d₁/(1 + d₂/(1 + …)).
      def beta_fraction(a, b, x)
        numerator = 1.0
        denominator = 0.0
        value = 1.0
        (1..10_000).each do |step|
          m = step / 2
          term = if step.odd? then -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                 else m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                 end
          denominator = 1 / nonzero(1 + term * denominator)
          numerator = nonzero(1 + term / numerator)
          value *= numerator * denominator
          break if (numerator * denominator - 1).abs < 1e-15
        end
        value
      end

      def nonzero(number) = number.zero? ? 1e-300 : number

      def log_gamma(value) = Math.lgamma(value).first

      def normal_end(probability)
        return -Float::INFINITY if probability.zero?
        return Float::INFINITY if probability == 1

        raise ArgumentError, "#{probability} is not a probability"
      end

      private_class_method :beta_fraction, :nonzero, :log_gamma, :normal_end
    end
  end
end
