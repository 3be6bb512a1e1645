# frozen_string_literal: true

require "pitwall/analyse/allocations/growth/shapes"

module Pitwall
  module Analyse
    module Growth
      # How well "time = overhead + factor · shape(N)" explains a sweep, as the logarithm of a marginal likelihood: the average over
      # all overheads >= 0 and factors >= 0, not the best of them, so that a model isn't preferred for having more freedom.
      #
      # Errors are relative. Dividing the model by the measured times makes it linear with errors of equal meaning at every N, so the average
      # has a closed form: a Gaussian's volume times the part of it where overhead and factor are allowed. What a point's time is off
      # beyond its own noise (a cache that gets too small, a noisy hour) has an unknown size; that is averaged over too.
      # @api private
      class Evidence
        # Sizes of a point's own deviation, relative, and how probable each is beforehand. None is smaller than 1%: nothing finer decides.
        DEVIATIONS = { 0.01 => 0.35, 0.02 => 0.25, 0.04 => 0.2, 0.08 => 0.13, 0.16 => 0.07 }.freeze
        # With less growth than this from the smallest to the largest N, the time is called constant.
        LEAST_GROWTH = 0.1
        LOG_TWO_PI = Math.log(2 * Math::PI)
        NEVER = -1e6
        # Of an order that may have a lower term, how probable that is beforehand.
        MIXED = 0.2
        COARSE = 12
        FINE = 8
        private_constant :DEVIATIONS, :LOG_TWO_PI, :NEVER, :MIXED, :COARSE, :FINE

        # constant: ns; factor: ns at the largest N; parameter: of the family of shapes, nil for a plain one;
        # evidence: logarithm, only good for differences
        Model = Struct.new(:order, :constant, :factor, :shape, :parameter, :evidence, keyword_init: true) do
          #: () -> Array[Float]
          def times = shape.map { |value| constant + factor * value }

          # How many numbers were chosen to fit.
          #: () -> Integer
          def parameters = order == :constant ? 1 : parameter ? 3 : 2

          # As Growth::Fit has them.
          #: (Array[Integer]) -> Hash[Symbol, Float]
          def coefficients(sizes)
            return { constant: constant } if order == :constant
            return exponential(sizes) if order == :exponential

            share = parameter ? parameter / (1 + parameter) : 1.0
            found = { constant: constant }
            found[Shapes::LOWER.fetch(order)] = (1 - share) * Shapes.unit(Shapes::LOWER.fetch(order), factor, sizes.last) if parameter
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

        # The best model of each order; its evidence is that of the whole order.
        #: () -> Array[Model]
        def models
          [constant, *Shapes::FUNCTIONS.keys.map { |order| polynomial(order) }, exponential, half_order]
        end

        private

        def constant
          scale, column = normal(@times.map { |time| 1 / time })
          fits = @noises.map { |weights, base| line(column, weights, base) }
          Model.new(order: :constant, constant: fits.max_by(&:first).last * scale, factor: 0.0, shape: @sizes.map { 0.0 },
                    evidence: total(fits.map(&:first)))
        end

        # Only a constant: [evidence, its value]
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

          mixed = averaged(Shapes::HIGHER_TO_LOWER.fetch(order)) { |odds| model(order, Shapes.mixed(order, @sizes, odds), odds) }
          best = pure.evidence > mixed.evidence ? pure : mixed
          best.evidence = total([Math.log(1 - MIXED) + pure.evidence, Math.log(MIXED) + mixed.evidence])
          best
        end

        def exponential
          averaged(Shapes::STEEPNESS) { |steepness| model(:exponential, Shapes.exponential(@sizes, steepness), steepness) }
        end

        def half_order
          models = Shapes::BETWEEN.map { |power| model(:between, Shapes.power(power, @sizes), power) }
          best = models.max_by(&:evidence)
          best.evidence = total(models.map(&:evidence)) - Math.log(models.size)
          best
        end

        # The best model of a family with one parameter, all of whose sizes (orders of magnitude) are equally probable: averaged on a
        # coarse grid, and on a fine one around the best of it.
        def averaged(range)
          low, high = range.map { |limit| Math.log(limit) }
          step = (high - low) / COARSE
          coarse = (0..COARSE).map { |at| yield Math.exp(low + at * step) }
          peak = coarse.each_index.max_by { |at| coarse[at].evidence }
          fine = (-FINE..FINE).map { |at| yield Math.exp(low + (peak + at.fdiv(FINE)) * step) }
          outside = coarse.reject.with_index { |_, at| (at - peak).abs <= 1 }
          best = (coarse + fine).max_by(&:evidence)
          best.evidence = total([*outside.map(&:evidence), *fine.map { |model| model.evidence - Math.log(FINE) }]) - Math.log(COARSE)
          best
        end

        def model(order, shape, parameter = nil)
          first_scale, first = normal(@times.map { |time| 1 / time })
          second_scale, second = normal(shape.zip(@times).map { |value, time| value / time })
          # Enough growth means overhead <= limit · factor.
          limit = ((shape.last - shape.first) / LEAST_GROWTH - shape.first) * second_scale / first_scale
          fits = @noises.map { |weights, base| plane(first, second, limit, weights, base) }
          _, constant, factor = fits.max_by(&:first)
          Model.new(order: order, constant: constant * first_scale, factor: factor * second_scale, shape: shape, parameter: parameter,
                    evidence: total(fits.map(&:first)))
        end

        # Overhead and factor: [evidence, the best pair of them that is allowed]
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

        # Probability between two normal quantiles, without cancellation in either tail.
        def between(upper, lower)
          return 0.0 if lower >= upper

          upper.positive? && lower.positive? ? tail(lower) - tail(upper) : tail(-upper) - tail(-lower)
        end

        def tail(quantile) = Math.erfc(quantile / Math.sqrt(2)) / 2

        # A column made to have a mean square of 1, and what its coefficient is to be multiplied with.
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
