# frozen_string_literal: true

module Pitwall
  module Analyse
    module Growth
      # Results of Growth in words. Times are written by views.
      # @api private
      module Sentence
        NAMES = { constant: "constant", log: "logarithmic", linear: "linear", n_log_n: "N log N",
                  quadratic: "quadratic", cubic: "cubic", exponential: "exponential" }.freeze
        # Costs per item that differ by a smaller factor are "about the same".
        SAME = 1.1
        # Orders with a lower probability are not named.
        NAMED = 0.05

        module_function

        # Result of one sweep: "quadratic (98% sure): 16x the N took 240x the time; …"
        #: (Fit) -> String
        def fit(fit)
          case fit.reason
          when :too_few_sizes
            "can't tell the order: it takes at least #{FEWEST_SIZES} different N (#{fit.points.size} measured)"
          when :no_times then "can't tell the order: every N and every time must be more than 0"
          when :no_simple_order then no_order(fit)
          when :unclear then unclear(fit)
          else decided(fit)
          end
        end

        # Comparison of two versions: "2.1x the speed at N = 10, 9.8x at N = 1000; the order changed from … to …"
        #: (Comparison) -> String
        def comparison(comparison)
          first, last = comparison.rows.first, comparison.rows.last
          return "nothing to compare: the versions have no N in common" unless first

          "#{speed_up(first, last)}; #{orders(comparison)}"
        end

        def decided(fit)
          "#{NAMES.fetch(fit.order)} (#{sure(fit.confidence)}): #{times(fit)}"
        end

        def times(fit)
          first, last = fit.points.first.n, fit.points.last.n
          took = "#{ratio(last.fdiv(first))} the N took #{ratio(fit.time_ratio.point)} the time"
          fit.order == :constant ? took : "#{took}; #{per_item(fit, first, last)}"
        end

        # Whether an item costs more at a larger N. An order above linear shows it; for other orders the interval must
        # exclude 1.
        def per_item(fit, first, last)
          change = fit.per_item_ratio
          above = ORDERS.index(fit.order) > ORDERS.index(:linear)
          if change.point.between?(1 / SAME, SAME) || !(above || differs?(change))
            return "an item costs about the same at every N"
          end

          caches = " (caches can do that to linear code, too)" if fit.order == :n_log_n
          "an item costs #{ratio(change.point)} as much at N = #{last} as at N = #{first}#{caches}"
        end

        def differs?(change) = !change.interval? || change.low > 1 || change.high < 1

        def unclear(fit)
          named = fit.candidates.select.with_index { |order, at| at.zero? || fit.weights[order] >= NAMED }
          possible = named.map { |order| "#{NAMES.fetch(order)} (#{percent(fit.weights[order])})" }
          rest = 1 - named.sum { |order| fit.weights[order] }
          possible << "something else (#{percent(rest)})" if rest > 1 - CERTAIN || possible.size < 2
          "can't tell: #{one_of(possible)}; a wider range of N, or more processes, would tell"
        end

        def no_order(fit)
          if fit.outlier
            order = NAMES.fetch(fit.weights.keys.first)
            where = ": N = #{fit.outlier[:n]} took #{ratio(fit.outlier[:ratio])} what #{order} growth would give"
          end
          "no simple order fits#{where}; overall the time grew about as N^#{format("%.1f", fit.exponent)}"
        end

        def speed_up(first, last)
          return "#{ratio(first.speed_up.point)} the speed at N = #{first.n}" if first.equal?(last)

          "#{ratio(first.speed_up.point)} the speed at N = #{first.n}, #{ratio(last.speed_up.point)} at N = #{last.n}"
        end

        def orders(comparison)
          before, after = comparison.orders.map { |order| order ? NAMES.fetch(order) : "an order that can't be told" }
          case comparison.changed
          when nil then "whether the order changed can't be told"
          when true then "the order changed from #{before} to #{after}"
          else "the order stayed #{after}"
          end
        end

        def one_of(list) = list.size < 2 ? list.join : "#{list[0..-2].join(", ")} or #{list.last}"

        # Probability in words: 0.9999 → "over 99.9% sure"
        def sure(share) = share > 0.999 ? "over 99.9% sure" : "#{percent(share)} sure"

        def percent(share) = share < 0.01 ? "under 1%" : format(share > 0.99 ? "%.1f%%" : "%.0f%%", share * 100)

        # Ratio with three digits: 148.7 → "149x", 3.24 → "3.24x", 0.087 → "0.087x"
        def ratio(value)
          return "#{value.round}x" if value >= 100

          digits = value >= 10 ? 1 : value >= 1 ? 2 : 3
          "#{format("%.#{digits}f", value).sub(/\.?0+\z/, "")}x"
        end

        private_class_method :decided, :times, :per_item, :differs?, :unclear, :no_order, :speed_up, :orders, :one_of,
                             :sure, :percent, :ratio
      end
    end
  end
end
