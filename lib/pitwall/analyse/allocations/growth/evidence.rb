# frozen_string_literal: true

require "pitwall/analyse/allocations/growth/shapes"

module Pitwall
  module Analyse
    module Growth
      # How well the model "time = overhead + factor · shape(N)" explains a sweep, as the logarithm of a marginal
      # likelihood.
      # The likelihood is averaged over all overheads >= 0 and factors >= 0. With the best ones instead, models with
      # more freedom would always win.
      #
      # Errors are relative. The model divided by the measured times is linear, and its errors have the same meaning at
      # every N. So the average has a closed form: the volume of a Gaussian times its share where overhead and factor
      # are allowed.
      # A point's time also deviates beyond its noise, e.g. because of a cache or of a busy machine. The size of this
      # deviation is unknown, so the likelihood is averaged over it too.
      # @api private
      class Evidence
        # Relative size of a point's deviation beyond its noise → prior probability.
        # None is below 1%, so smaller differences never decide.
        DEVIATIONS = { 0.01 => 0.35, 0.02 => 0.25, 0.04 => 0.2, 0.08 => 0.13, 0.16 => 0.07 }.freeze
        # With less growth than this from the smallest to the largest N, the time counts as constant.
        LEAST_GROWTH = 0.1
        LOG_TWO_PI = Math.log(2 * Math::PI)
        # Evidence of an impossible model.
        NEVER = -1e6
        # Prior probability that an order has its lower term too.
        MIXED = 0.2
        # Steps of the coarse grid for a family's parameter, and steps of the fine grid in each coarse step.
        COARSE = 12
        FINE = 8
        private_constant :DEVIATIONS, :LOG_TWO_PI, :NEVER, :MIXED, :COARSE, :FINE

        # A fitted model. constant: ns. factor: ns at the largest N. parameter: of the family of shapes; nil if it has
        # none. evidence: a logarithm; only differences have a meaning.
        Model = Struct.new(:order, :constant, :factor, :shape, :parameter, :evidence, keyword_init: true) do
          # Time at each N, in ns.
          #: () -> Array[Float]
          def times = shape.map { |value| constant + factor * value }

          # Number of fitted parameters.
          #: () -> Integer
          def parameters = order == :constant ? 1 : parameter ? 3 : 2

          # Coefficients as in Growth::Fit.
          #: (Array[Integer]) -> Hash[Symbol, Float]
          def coefficients(sizes)
            return { constant: constant } if order == :constant
            return exponential(sizes) if order == :exponential

            share = parameter ? parameter / (1 + parameter) : 1.0
            found = { constant: constant }
            lower = Shapes::LOWER.fetch(order) if parameter
            found[lower] = (1 - share) * Shapes.unit(lower, factor, sizes.last) if parameter
            found.merge(order => share * Shapes.unit(order, factor, sizes.last))
          end

          private

          def exponential(sizes)
            rate = parameter / (sizes.last - sizes.first)
            { constant: constant, exponential: factor * Math.exp(-rate * sizes.last), base: Math.exp(rate) }
          end
        end

        # @param sizes [Array<Integer>] ascending
        # @param times [Array<Float>] ns
        # @param errors [Array<Float>] relative standard errors of the times, 0.0 where unknown
        #: (Array[Integer], Array[Float], Array[Float]) -> void
        def initialize(sizes, times, errors)
          @sizes = sizes
          @times = times
          @noises = DEVIATIONS.map do |deviation, probability|
            weights = errors.map { |error| 1 / (error**2 + deviation**2) }
            [weights, Math.log(probability) + (weights.sum { |weight| Math.log(weight) } - sizes.size * LOG_TWO_PI) / 2]
          end
        end

        # The best model of each order. Its evidence is that of the whole order.
        #: () -> Array[Model]
        def models
          [constant, *Shapes::FUNCTIONS.keys.map { |order| polynomial(order) }, exponential, half_order]
        end

        private

        def constant
          scale, column = normal(@times.map { |time| 1 / time })
          fits = @noises.map { |weights, base| line(column, weights, base) }
          Model.new(order: :constant, constant: fits.max_by(&:first).last * scale, factor: 0.0,
                    shape: @sizes.map { 0.0 }, evidence: total(fits.map(&:first)))
        end

        # Fits a constant by weighted least squares: [evidence, constant]
        def line(column, weights, base)
          square = product = all = 0.0
          weights.each_with_index do |weight, at|
            square += weight * column[at]**2
            product += weight * column[at]
            all += weight
          end
          [base - (all - product**2 / square) / 2 + (LOG_TWO_PI - Math.log(square)) / 2, product / square]
        end

        def polynomial(order)
          pure = model(order, Shapes.pure(order, @sizes))
          return pure unless Shapes::LOWER.key?(order)

          mixed = averaged(Shapes::HIGHER_TO_LOWER.fetch(order)) do |odds|
            model(order, Shapes.mixed(order, @sizes, odds), odds)
          end
          best = pure.evidence > mixed.evidence ? pure : mixed
          best.evidence = total([Math.log(1 - MIXED) + pure.evidence, Math.log(MIXED) + mixed.evidence])
          best
        end

        def exponential
          averaged(Shapes::STEEPNESS) do |steepness|
            model(:exponential, Shapes.exponential(@sizes, steepness), steepness)
          end
        end

        def half_order
          models = Shapes::BETWEEN.map { |power| model(:between, Shapes.power(power, @sizes), power) }
          best = models.max_by(&:evidence)
          best.evidence = total(models.map(&:evidence)) - Math.log(models.size)
          best
        end

        # The best model of a family with one parameter. Its evidence is averaged over the parameter.
        # The logarithm of the parameter is uniformly distributed over the range. The average is taken on a coarse grid,
        # and on a fine grid around the best coarse point.
        def averaged(range)
          low, high = range.map { |limit| Math.log(limit) }
          step = (high - low) / COARSE
          coarse = (0..COARSE).map { |at| yield Math.exp(low + at * step) }
          peak = coarse.each_index.max_by { |at| coarse[at].evidence }
          fine = (-FINE..FINE).map { |at| yield Math.exp(low + (peak + at.fdiv(FINE)) * step) }
          outside = coarse.reject.with_index { |_, at| (at - peak).abs <= 1 }
          best = (coarse + fine).max_by(&:evidence)
          evidences = outside.map(&:evidence) + fine.map { |model| model.evidence - Math.log(FINE) }
          best.evidence = total(evidences) - Math.log(COARSE)
          best
        end

        def model(order, shape, parameter = nil)
          first_scale, first = normal(@times.map { |time| 1 / time })
          second_scale, second = normal(shape.zip(@times).map { |value, time| value / time })
          # Growth of at least LEAST_GROWTH means that overhead <= limit · factor.
          limit = ((shape.last - shape.first) / LEAST_GROWTH - shape.first) * second_scale / first_scale
          fits = @noises.map { |weights, base| plane(first, second, limit, weights, base) }
          _, constant, factor = fits.max_by(&:first)
          Model.new(order: order, constant: constant * first_scale, factor: factor * second_scale, shape: shape,
                    parameter: parameter, evidence: total(fits.map(&:first)))
        end

        # Fits overhead and factor by weighted least squares: [evidence, overhead, factor].
        # A negative overhead is replaced by 0.
        def plane(first, second, limit, weights, base)
          a = b = c = x = y = all = 0.0 # sums of products of the columns, and of their products with the target, 1
          weights.each_with_index do |weight, at|
            one, other = first[at], second[at]
            a += weight * one * one
            b += weight * one * other
            c += weight * other * other
            x += weight * one
            y += weight * other
            all += weight
          end
          determinant = a * c - b * b
          return [NEVER, 0.0, 0.0] unless determinant > 1e-9 * a * c

          constant, factor = (c * x - b * y) / determinant, (a * y - b * x) / determinant
          misfit = all - constant * x - factor * y
          positive = constant / Math.sqrt(c / determinant)
          excess = (constant - limit * factor) / Math.sqrt((c + limit**2 * a + 2 * limit * b) / determinant)
          allowed = between(positive, excess)
          volume = [LOG_TWO_PI - Math.log(determinant) / 2, 0.0].min
          evidence = allowed.positive? ? base - misfit / 2 + volume + Math.log(allowed) : NEVER
          constant.negative? ? [evidence, 0.0, y / c] : [evidence, constant, factor]
        end

        # Probability between two normal quantiles. The formulas avoid cancellation in both tails.
        def between(upper, lower)
          return 0.0 if lower >= upper

          upper.positive? && lower.positive? ? tail(lower) - tail(upper) : tail(-upper) - tail(-lower)
        end

        def tail(quantile) = Math.erfc(quantile / Math.sqrt(2)) / 2

        # Scales a column to a mean square of 1: [factor to multiply its coefficient with, scaled column]
        def normal(column)
          scale = 1 / Math.sqrt(column.sum { |value| value**2 } / column.size)
          [scale, column.map { |value| value * scale }]
        end

        # Logarithm of a sum of exponentials.
        def total(logarithms)
          most = logarithms.max
          most + Math.log(logarithms.sum { |logarithm| Math.exp(logarithm - most) })
        end
      end
    end
  end
end
