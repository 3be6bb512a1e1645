# frozen_string_literal: true

lib = File.expand_path("../../lib", __dir__)
$LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
require "pitwall/analyse/statistics/statistics"

module Benchmarks
  # Pitwall's own statistics, at the one level that all benchmarks state.
  module Statistics
    # low and high are infinite where there are too few values for an interval.
    Estimate = Struct.new(:point, :low, :high, :n) do
      # The same interval on another scale, such as Math.exp of log ratios.
      def map = self.class.new(yield(point), yield(low), yield(high), n)

      # "1.038 (0.935 … 1.151)"; the point alone where there is no interval.
      #: (String) -> String  number: a format, "%.3f"
      def text(number)
        return format(number, point) unless high.finite?

        format("#{number} (#{number} … #{number})", point, low, high)
      end
    end

    LEVEL = 0.95

    module_function

    #: (Array[Numeric]) -> Float
    def mean(values) = Pitwall::Analyse::Statistics.mean(values)

    #: (Array[Numeric]) -> Float
    def median(values) = Pitwall::Analyse::Statistics.median(values)

    # The mean without the lowest and highest tenth, which a few disturbed rounds do not move, and its interval (Yuen).
    #: (Array[Numeric]) -> Estimate
    def estimate(values)
      found = Pitwall::Analyse::Statistics.interval(values.map(&:to_f), level: LEVEL)
      return Estimate.new(found.point, -Float::INFINITY, Float::INFINITY, found.n) if values.size < 3

      Estimate.new(found.point, found.low, found.high, found.n)
    end

    # The estimate of a ratio: of its logarithm, so that twice and half are as far from 1.
    #: (Array[Numeric]) -> Estimate
    def ratio(ratios) = estimate(ratios.map { |ratio| Math.log(ratio) }).map { |log| Math.exp(log) }
  end
end
