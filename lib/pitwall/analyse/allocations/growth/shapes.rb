# frozen_string_literal: true

module Pitwall
  module Analyse
    module Growth
      # Functions of N that a running time may follow, besides a fixed overhead.
      # An order is a family of shapes. Real code of an order also has lower terms (quadratic code has a linear part)
      # or a free parameter (the base of an exponential).
      # A shape is an Array of Floats, one for each point, relative to the value at the largest N.
      # @api private
      module Shapes
        FUNCTIONS = {
          log: ->(n) { Math.log2(n) },
          linear: ->(n) { n.to_f },
          n_log_n: ->(n) { n * Math.log2(n) },
          quadratic: ->(n) { n.to_f**2 },
          cubic: ->(n) { n.to_f**3 }
        }.freeze

        # Powers of N that are no order. If one of them is most probable, the result is that no simple order fits.
        BETWEEN = [0.5, 1.5, 2.5].freeze

        # Order → order of its possible lower term.
        LOWER = { quadratic: :linear, cubic: :quadratic }.freeze
        # Order → range of the ratio of its higher to its lower term at the largest N.
        # Below the range, the time has the lower term's order.
        HIGHER_TO_LOWER = { quadratic: [0.15, 9.0], cubic: [0.4, 9.0] }.freeze
        # Range of the logarithm of an exponential's growth over the sweep.
        # A slower one looks like a polynomial, and a faster one takes too long to measure.
        STEEPNESS = [1.4, 46.0].freeze

        module_function

        # Shape of an order without a lower term.
        #: (Symbol, Array[Integer]) -> Array[Float]
        def pure(order, sizes) = scaled(sizes.map { |n| FUNCTIONS.fetch(order).call(n) })

        # Coefficient of a term that has this value at N.
        #: (Symbol, Float, Integer) -> Float
        def unit(order, value, n) = value / FUNCTIONS.fetch(order).call(n)

        # Shape of a power of N.
        #: (Float, Array[Integer]) -> Array[Float]
        def power(exponent, sizes) = scaled(sizes.map { |n| n**exponent })

        # Shape of an order with its lower term.
        # @param odds [Float] ratio of the higher to the lower term at the largest N
        #: (Symbol, Array[Integer], Float) -> Array[Float]
        def mixed(order, sizes, odds)
          share = odds / (1 + odds)
          terms = pure(order, sizes).zip(pure(LOWER.fetch(order), sizes))
          terms.map { |higher, lower| share * higher + (1 - share) * lower }
        end

        # Shape of an exponential.
        # @param steepness [Float] logarithm of the growth from the smallest to the largest N
        #: (Array[Integer], Float) -> Array[Float]
        def exponential(sizes, steepness)
          rate = steepness / (sizes.last - sizes.first)
          sizes.map { |n| Math.exp(rate * (n - sizes.last)) }
        end

        def scaled(values) = values.map { |value| value / values.last }
        private_class_method :scaled
      end
    end
  end
end
