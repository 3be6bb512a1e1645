# frozen_string_literal: true

# Slow, obvious answers to what Analyse::Statistics and Analyse::Sequential work out.
module Oracle
  module Statistics
    module_function

    # Lower tail of Student's t at a negative value: Simpson's rule on the density, from 1 / value to 0 of 1 / t.
    def student_tail(value, degrees, steps: 4000)
      scale = gamma_ratio(degrees) / Math.sqrt(degrees * Math::PI)
      width = 1.0 / (value.abs * steps)
      # (1 + t² / ν)^(−(ν + 1) / 2) · t², written in 1 / t
      density = lambda do |inverse|
        sum = inverse * inverse + 1.0 / degrees
        scale * (inverse * inverse / sum)**(0.5 * (degrees - 1)) / sum
      end
      (0..steps).sum { |step| density.call(step * width) * simpson(step, steps) } * width / 3
    end

    # Γ((ν + 1) / 2) / Γ(ν / 2), from Γ(x + 1) = x Γ(x).
    def gamma_ratio(degrees)
      root = Math.sqrt(Math::PI)
      (1...degrees).inject(1 / root) { |ratio, lower| lower / 2.0 / ratio }
    end

    def simpson(step, steps)
      return 1 if step.zero? || step == steps

      step.odd? ? 4 : 2
    end

    # Trimmed mean and standard error, by the definition of the winsorised variance.
    def yuen(values, trim)
      cut = (trim * values.size).floor
      sorted = values.sort
      kept = sorted[cut..-1 - cut]
      winsorised = sorted.map { |value| value.clamp(kept.first, kept.last) }
      mean = winsorised.sum.fdiv(values.size)
      variance = winsorised.sum { |value| (value - mean)**2 } / (values.size - 1)
      [kept.sum.fdiv(kept.size), Math.sqrt((values.size - 1) * variance / (kept.size * (kept.size - 1)))]
    end

    # How often the interval from the k-th smallest to the k-th largest of n values holds the median.
    def order_coverage(n, k)
      below = (0...k).sum { |count| Rational((n - count + 1..n).inject(1, :*), (1..count).inject(1, :*)) }
      1 - 2 * below / 2**n
    end

    # How often a sum of normal values passes one of the boundaries when there is no effect.
    def alarms(fractions, boundaries, random, trials)
      trials.times.count do
        sum = before = 0.0
        fractions.zip(boundaries).any? do |fraction, boundary|
          sum += Math.sqrt(fraction - before) * Trial::Noise.normal(random)
          before = fraction
          (sum / Math.sqrt(fraction)).abs > boundary
        end
      end.fdiv(trials)
    end
  end
end
