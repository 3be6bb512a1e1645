# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"
require "pitwall/analyse/allocations/growth/evidence"
require "pitwall/analyse/allocations/growth/sentence"

module Pitwall
  module Analyse
    # How a running time grows with N. Names the order if the sweep shows it with 95% probability, else the possible
    # orders.
    module Growth
      # Orders, from the slowest to the fastest growing.
      ORDERS = %i[constant log linear n_log_n quadratic cubic exponential].freeze
      LEVEL = 0.99
      # An order is named only if it has at least this probability.
      CERTAIN = 0.95
      # Fewest different N for which an order is named.
      FEWEST_SIZES = 4
      # Relative distance of times from the best order's curve that is tolerated besides their noise, because of caches.
      TOLERANCE = 0.04
      # The same if each N was measured once. The noise is then unknown and included.
      TOLERANCE_ALONE = 0.065
      private_constant :TOLERANCE, :TOLERANCE_ALONE

      # One N.
      #
      # n:              Integer
      # values:         time of each process, ns
      # time, per_item: Estimates in ns of the median over processes
      # fitted:         Float, time by the best order, ns; nil if no order fits
      # exponent:       Float, from the previous N to this one the time grew as N to this power; nil for the first
      Point = Struct.new(:n, :values, :time, :per_item, :fitted, :exponent, keyword_init: true)

      # Result of a sweep.
      #
      # order:        one of ORDERS; nil if undecided
      # candidates:   possible orders, most probable first; [order] if decided; empty if no simple order fits
      # confidence:   probability of the most probable order among those considered, 0.0 to 1.0
      # weights:      order → probability; :between is for powers of N that are no order (N^1.5)
      # coefficients: ns, of the most probable order: {constant: 1200.0, linear: 3.1, quadratic: 0.2}, with log and
      #               n_log_n to base 2; {constant:, exponential:, base:} for constant + exponential · base^N;
      #               nil if no simple order fits
      # exponent:     Float, over the whole sweep the time grew about as N to this power
      # time_ratio, per_item_ratio: Estimates, largest N relative to smallest N
      # reason:       nil (decided), :unclear, :no_simple_order, :too_few_sizes or :no_times
      # outlier:      {n:, ratio:}, the point farthest from the best curve if no order fits; else nil
      Fit = Struct.new(:order, :candidates, :confidence, :weights, :coefficients, :points, :exponent, :time_ratio,
                       :per_item_ratio, :reason, :outlier, keyword_init: true) do
        #: () -> bool
        def decided? = !order.nil?

        # The result in one line.
        #: () -> String
        def sentence = Sentence.fit(self)
      end

      # One N of two versions. base, time: Estimates in ns; speed_up: Estimate of base / time.
      Row = Struct.new(:n, :base, :time, :speed_up)

      # Two versions. rows: one for each N that both have. orders: [base's, other's], nil if undecided.
      # changed: whether the order changed; nil if undecided.
      Comparison = Struct.new(:rows, :orders, :changed, keyword_init: true) do
        # The comparison in one line.
        #: () -> String
        def sentence = Sentence.comparison(self)
      end

      module_function

      # Fits the orders to a sweep.
      # @param points [Array<Hash>] {n: Integer, values: [ns of each process…]}; points with the same N are merged
      #: (Array[Hash[Symbol, untyped]], ?level: Float) -> Fit
      def fit(points, level: LEVEL)
        points = measured(points, level)
        unknown = Fit.new(candidates: [], confidence: 0.0, weights: {}, points: points)
        valid = points.all? { |point| point.n.positive? && point.values.all?(&:positive?) }
        return unknown.tap { |fit| fit.reason = :no_times } unless valid

        describe(unknown, level) if points.size > 1
        return unknown.tap { |fit| fit.reason = :too_few_sizes } if points.size < FEWEST_SIZES

        decide(unknown)
      end

      # Compares two versions at every N that both have times for.
      # @param paired [bool] whether values with the same index were measured one right after the other
      #: (Fit, Fit, ?paired: bool, ?level: Float) -> Comparison
      def against(base, other, paired: false, level: LEVEL)
        found = other.points.to_h { |point| [point.n, point] }
        rows = base.points.filter_map do |point|
          second = found[point.n]
          next unless second && (point.values + second.values).all?(&:positive?)

          Row.new(point.n, point.time, second.time, ratio(point.values, second.values, level, paired))
        end
        Comparison.new(rows: rows, orders: [base.order, other.order], changed: changed(base, other))
      end

      def measured(points, level)
        values = points.each_with_object({}) { |point, all| (all[point[:n]] ||= []).concat(point[:values]) }
        values.reject { |_, list| list.empty? }.sort.map do |n, list|
          time = Statistics.median_interval(list, level: level)
          Point.new(n: n, values: list, time: time, per_item: n.positive? ? time.map { |value| value / n } : nil)
        end
      end
      private_class_method :measured

      def describe(fit, level)
        points = fit.points
        points.each_cons(2) { |before, point| point.exponent = slope([before, point]) }
        fit.exponent = slope(points)
        fit.time_ratio = ratio(points.last.values, points.first.values, level, false)
        fit.per_item_ratio = fit.time_ratio.map { |value| value * points.first.n / points.last.n }
      end
      private_class_method :describe

      def decide(fit)
        errors = relative_errors(fit.points)
        models = Evidence.new(fit.points.map(&:n), fit.points.map { |point| point.time.point }, errors).models
        fit.weights = weights(models)
        order, fit.confidence = fit.weights.first
        model = models.find { |candidate| candidate.order == order }
        possible = fit.weights.keys.take(likely(fit.weights.values))
        return misfit(fit, model) if possible == [:between] || far_off?(fit.points, model, errors)

        fit.candidates = possible - [:between]
        fit.order = order if possible.size == 1
        fit.reason = :unclear unless fit.order
        fit.points.zip(model.times) { |point, time| point.fitted = time }
        fit.coefficients = model.coefficients(fit.points.map(&:n)) unless order == :between
        fit
      end
      private_class_method :decide

      # Number of weights (heaviest first) that together reach CERTAIN.
      def likely(weights)
        sum = 0.0
        weights.index { |weight| (sum += weight) >= CERTAIN } + 1
      end
      private_class_method :likely

      def weights(models)
        most = models.map(&:evidence).max
        sorted = models.sort_by { |model| -model.evidence }
        parts = sorted.to_h { |model| [model.order, Math.exp(model.evidence - most)] }
        whole = parts.values.sum
        parts.transform_values { |part| part / whole }
      end
      private_class_method :weights

      def misfit(fit, model)
        pairs = fit.points.zip(model.times).select { |_, time| time.positive? }
        point, time = pairs.max_by { |one, fitted| Math.log(one.time.point / fitted).abs }
        fit.outlier = { n: point.n, ratio: point.time.point / time } if point && model.order != :between
        fit.reason = :no_simple_order
        fit
      end
      private_class_method :misfit

      # Whether the sum of squares is larger than that of 999 in 1000 sweeps that fit.
      def far_off?(points, model, errors)
        tolerance = errors.any?(&:positive?) ? TOLERANCE : TOLERANCE_ALONE
        squares = points.zip(model.times, errors).sum do |point, time, error|
          Math.log(point.time.point / time)**2 / (error**2 + tolerance**2)
        end
        squares > chi_square([points.size - model.parameters, 1].max)
      end
      private_class_method :far_off?

      # The 99.9% quantile of the chi-squared distribution (Wilson and Hilferty 1931).
      def chi_square(degrees) = degrees * (1 - 2.0 / (9 * degrees) + 3.0902 * Math.sqrt(2.0 / (9 * degrees)))**3
      private_class_method :chi_square

      # Relative standard error of each point's median. A few processes say little about their own noise.
      # So each point's variance is averaged with the pooled variance, which counts as four processes.
      def relative_errors(points)
        parts = points.map { |point| Statistics.yuen(point.values.map { |value| Math.log(value) }) }
        known = parts.select(&:standard_error)
        return points.map { 0.0 } if known.empty?

        pooled = known.sum { |part| part.standard_error**2 * part.n } / known.size
        parts.map do |part|
          own = part.standard_error ? part.standard_error**2 * part.n : 0.0
          variance = (4 * pooled + (part.n - 1) * own) / (part.n + 3)
          # A median has a larger error than a mean by the factor √(π/2); for two values they are equal.
          Math.sqrt(variance / part.n * (part.n > 2 ? Math::PI / 2 : 1))
        end
      end
      private_class_method :relative_errors

      # Median of the ratios of two versions' (or two sizes') times, with an interval for unequal noise (Welch 1947).
      def ratio(above, below, level, paired)
        above, below = [above, below].map { |values| values.map { |value| Math.log(value) } }
        if paired && above.size == below.size
          differences = above.zip(below).map { |a, b| a - b }
          return Statistics.interval(differences, level: level).map { |value| Math.exp(value) }
        end

        first, second = Statistics.yuen(above), Statistics.yuen(below)
        difference = first.point - second.point
        number = [first.n, second.n].min
        unless first.standard_error && second.standard_error
          return Estimate.new(Math.exp(difference), nil, nil, level, number)
        end

        reach = welch(first, second, level)
        Estimate.new(difference, difference - reach, difference + reach, level, number).map { |value| Math.exp(value) }
      end
      private_class_method :ratio

      def welch(first, second, level)
        squares = [first, second].map { |part| part.standard_error**2 }
        whole = squares.sum
        return 0.0 if whole.zero?

        degrees = whole**2 / (squares[0]**2 / first.degrees + squares[1]**2 / second.degrees)
        -Statistics.student_quantile((1 - level) / 2, degrees) * Math.sqrt(whole)
      end
      private_class_method :welch

      # Slope of log time over log N by least squares.
      def slope(points)
        sizes, times = points.map { |point| Math.log(point.n) }, points.map { |point| Math.log(point.time.point) }
        middle = sizes.sum / sizes.size
        sizes.zip(times).sum { |n, time| (n - middle) * time } / sizes.sum { |n| (n - middle)**2 }
      end
      private_class_method :slope

      # Whether the order changed; nil if undecided.
      def changed(base, other)
        possible = [base, other].map(&:candidates)
        return nil if possible.any?(&:empty?)
        return true if (possible[0] & possible[1]).empty?

        base.decided? && other.decided? ? false : nil
      end
      private_class_method :changed
    end
  end
end
