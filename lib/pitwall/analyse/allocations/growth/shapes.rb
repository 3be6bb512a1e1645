# frozen_string_literal: true

module Pitwall
  module Analyse
    module Growth
      # The functions of N that a running time may follow beside a fixed overhead. An order is a family of shapes, because real code of an
      # order also has lower terms (quadratic code has a linear part) or a free parameter (the base of an exponential).
      # A shape is an Array of Floats, one a point, 1.0 at the largest N.
      # @api private
      module Shapes
        FUNCTIONS = {
          log: ->(n) { Math.log2(n) },
          linear: ->(n) { n.to_f },
          n_log_n: ->(n) { n * Math.log2(n) },
          quadratic: ->(n) { n.to_f**2 },
          cubic: ->(n) { n.to_f**3 }
        }.freeze

        # Powers of N that belong to none of the orders. When one of them wins, the answer is that no simple order fits.
        BETWEEN = [0.5, 1.5, 2.5].freeze

        # Order → the order of the lower term that may come with it.
        LOWER = { quadratic: :linear, cubic: :quadratic }.freeze
        # Order → higher to lower term at the largest N, where together they take all of the time: below, the lower term names the order.
        HIGHER_TO_LOWER = { quadratic: [0.15, 9.0], cubic: [0.4, 9.0] }.freeze
        # An exponential grows by e to the power of these over the sweep: below, it can't be told from a polynomial; above, no one waits for it.
        STEEPNESS = [1.4, 46.0].freeze

        module_function

        #: (Symbol, Array[Integer]) -> Array[Float]
        def pure(order, sizes) = scaled(sizes.map { |n| FUNCTIONS.fetch(order).call(n) })

        # What a term that is `value` at N is for a function of 1.
        #: (Symbol, Float, Integer) -> Float
        def unit(order, value, n) = value / FUNCTIONS.fetch(order).call(n)

        #: (Float, Array[Integer]) -> Array[Float]
        def power(exponent, sizes) = scaled(sizes.map { |n| n**exponent })

        # odds: higher to lower term at the largest N
        #: (Symbol, Array[Integer], Float) -> Array[Float]
        def mixed(order, sizes, odds)
          share = odds / (1 + odds)
          pure(order, sizes).zip(pure(LOWER.fetch(order), sizes)).map { |higher, lower| share * higher + (1 - share) * lower }
        end

        # steepness: logarithm of the growth from the smallest to the largest N
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
