# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"

module Pitwall
  module Analyse
    # The statistics everything else rests on, in plain Ruby. Probabilities are lower tails and accurate to many digits down to
    # 1e-13 and beyond: the first look of a sequential comparison asks for 6e-12. A probability near 1 can't be written that
    # exactly, so callers turn to the other tail: `-student_quantile(small, degrees)`.
    module Statistics
      # What is left out of a trimmed mean on each side.
      TRIM = 0.1

      # What an interval is made of: `point` ± quantile × `standard_error`, Student's t with `degrees` of freedom.
      Parts = Struct.new(:point, :standard_error, :degrees, :n)

      module_function

      #: (Array[Numeric]) -> Float
      def mean(values) = values.sum(0.0) / values.size

      #: (Array[Numeric]) -> Float
      def median(values) = quantile(values, 0.5)

      # By linear interpolation between order statistics (Hyndman and Fan 1996, definition 7).
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

      # Values beyond these are far out: quartiles ∓ 3 × the distance between them (Tukey 1977).
      #: (Array[Numeric]) -> [Float, Float]
      def far_out_fences(values)
        first = quantile(values, 0.25)
        third = quantile(values, 0.75)
        [first - 3 * (third - first), third + 3 * (third - first)]
      end

      #: (Array[Numeric]) -> Array[Numeric]
      def far_out(values)
        return [] if values.empty?

        low, high = far_out_fences(values)
        values.select { |value| value < low || value > high }
      end

      #: (Array[Numeric], ?trim: Float) -> Float
      def trimmed_mean(values, trim: TRIM)
        cut = (trim * values.size).floor
        mean(values.sort[cut...values.size - cut])
      end

      # The trimmed mean and its standard error: the sum of squares of the winsorised values over h(h − 1), h values being
      # kept, with h − 1 degrees of freedom (Tukey and McLaughlin 1963; Yuen 1974). One outlier in ten moves neither.
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

      # The interval of a trimmed mean (`trim: 0` for Student's own interval of the mean).
      # @param parts [Parts, Array<Numeric>] what `yuen` found, or the values
      #: (Parts | Array[Numeric], level: Float, ?trim: Float) -> Estimate
      def interval(parts, level:, trim: TRIM)
        parts = yuen(parts, trim: trim) if parts.is_a?(Array)
        return Estimate.new(parts.point, nil, nil, level, parts.n) unless parts.standard_error

        reach = -student_quantile((1 - level) / 2, parts.degrees) * parts.standard_error
        Estimate.new(parts.point, parts.point - reach, parts.point + reach, level, parts.n)
      end

      # The median with an interval that assumes nothing of the distribution: the k-th smallest and k-th largest value, where
      # fewer than k of n values lie below the median with the binomial's probability (Conover 1999, 3.2). Too few values
      # for the level asked give all there are, and the level they reach.
      #: (Array[Numeric], level: Float) -> Estimate
      def median_interval(values, level:)
        sorted = values.sort
        n = sorted.size
        point = median(sorted)
        return Estimate.new(point, nil, nil, level, n) if n < 2

        doubt = 1 - level
        tail = term = 0.5**n # probability of at most `rank` values below the median
        return Estimate.new(point, sorted.first.to_f, sorted.last.to_f, 1 - 2 * tail, n) if 2 * tail > doubt

        rank = 0
        while 2 * rank + 2 < n
          term *= (n - rank).fdiv(rank + 1)
          break if 2 * (tail + term) > doubt

          tail += term
          rank += 1
        end
        Estimate.new(point, sorted[rank].to_f, sorted[-1 - rank].to_f, level, n)
      end

      # What alpha each of several p-values is held against, so that the chance of rejecting any of them wrongly stays below
      # `alpha` (Holm 1979): the smallest against alpha / m, the next against alpha / (m − 1) and so on; from the first that isn't
      # rejected on, all are held against that one's. The block says whether one is rejected where more than p <= share decides.
      #: (Array[Float], alpha: Float) ?{ (Integer, Float) -> bool } -> Array[Float]
      def holm(p_values, alpha:)
        shares = Array.new(p_values.size)
        standing = p_values.size
        rejecting = true
        p_values.each_index.sort_by { |index| [p_values[index], index] }.each do |index|
          shares[index] = alpha / standing
          rejecting &&= block_given? ? yield(index, shares[index]) : p_values[index] <= shares[index]
          standing -= 1 if rejecting
        end
        shares
      end

      #: (Float) -> Float
      def normal_cdf(value) = 0.5 * Math.erfc(-value / Math.sqrt(2))

      # From the two-term approximation of Abramowitz and Stegun (26.2.23, wrong by less than 0.0005), made exact by Halley's steps.
      #: (Float) -> Float
      def normal_quantile(probability)
        return normal_end(probability) unless probability.positive? && probability < 1
        return -normal_quantile(1 - probability) if probability > 0.5

        root = Math.sqrt(-2 * Math.log(probability))
        value = (2.515517 + root * (0.802853 + root * 0.010328)) / (1 + root * (1.432788 + root * (0.189269 + root * 0.001308))) - root
        3.times do
          error = (normal_cdf(value) - probability) / normal_density(value)
          value -= error / (1 + 0.5 * error * value)
        end
        value
      end

      #: (Float) -> Float
      def normal_density(value) = Math.exp(-0.5 * value * value) / Math.sqrt(2 * Math::PI)

      # Half of the regularised incomplete beta function I(ν/2, 1/2) at ν/(ν + t²) is the lower tail of −|t|
      # (Abramowitz and Stegun 26.7.1).
      #: (Float, Integer) -> Float
      def student_cdf(value, degrees)
        return value.positive? ? 1.0 : 0.0 if value.infinite?

        square = value * value
        tail = 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + square), square / (degrees + square))
        value.positive? ? 1 - tail : tail
      end

      # Newton's steps on ln(probability) against ln(−t), where Student's tail is nearly a straight line, kept inside a bracket.
      #: (Float, Integer) -> Float
      def student_quantile(probability, degrees)
        return normal_end(probability) unless probability.positive? && probability < 1
        return -student_quantile(1 - probability, degrees) if probability > 0.5
        return 0.0 unless probability < 0.5

        wanted = Math.log(probability)
        # t is farther out than the normal quantile, and its tail thinner than Cauchy's, 1 / (π t)
        low = -normal_quantile(probability)
        high = [1 / Math.tan(Math::PI * probability), low].max * (1 + 1e-9)
        reach = low * Math.sqrt(1 + (low * low + 1) / (2.0 * degrees)) # the first term of Cornish and Fisher's, roughly
        reach = Math.sqrt(low * high) unless reach.between?(low, high)
        100.times do
          tail = student_cdf(-reach, degrees)
          error = Math.log(tail) - wanted
          error.positive? ? low = reach : high = reach
          step = error * tail / student_density(reach, degrees)
          following = reach * Math.exp(step / reach)
          return -following if (following - reach).abs <= 1e-8 * reach # a step's error is the square of the one before

          reach = following > low && following < high ? following : 0.5 * (low + high)
        end
        -reach
      end

      #: (Float, Integer) -> Float
      def student_density(value, degrees)
        scale = log_gamma(0.5 * (degrees + 1)) - log_gamma(0.5 * degrees) - 0.5 * Math.log(degrees * Math::PI)
        Math.exp(scale - 0.5 * (degrees + 1) * Math.log(1 + value * value / degrees))
      end

      # I(a, b) at x, by its continued fraction (Abramowitz and Stegun 26.5.8, evaluated as Lentz does) on the side of the mean
      # where it converges fast. `rest` is 1 − x, given apart because a difference from 1 would lose its digits.
      #: (Float, Float, Float, Float) -> Float
      def incomplete_beta(a, b, x, rest)
        return 0.0 if x <= 0
        return 1.0 if rest <= 0
        return 1 - incomplete_beta(b, a, rest, x) if x > (a + 1) / (a + b + 2)

        front = Math.exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * Math.log(x) + b * Math.log(rest))
        front / (a * beta_fraction(a, b, x))
      end

      # 1 + d₁/(1 + d₂/(1 + …)).
      def beta_fraction(a, b, x)
        numerator = 1.0
        denominator = 0.0
        value = 1.0
        (1..10_000).each do |step|
          m = step / 2
          term = step.odd? ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)) : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
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
