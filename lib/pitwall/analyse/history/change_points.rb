# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Points at which the level of a series of results changed.
    #
    # Ranks are compared, so outliers and the shape of the noise don't matter. For each place in an interval, Wilcoxon's
    # statistic compares what is before with what is after (Pettitt 1979, "A non-parametric approach to the change-point
    # problem"). Intervals are seeded: of falling lengths, half overlapping (Kovács, Bühlmann, Li and Munk 2023, "Seeded
    # binary segmentation"), so that two changes that cancel each other are found. The largest statistic over all
    # intervals is the series' score. Its distribution without a change is that of a random permutation, whatever the
    # noise is: CRITICAL has its quantiles. Of all intervals with a significant score the shortest is taken first
    # (Baranowski, Chen and Fryzlewicz 2019, "Narrowest-over-threshold"), because it holds one change only.
    module ChangePoints
      # Results on each side of a change, at least.
      LEAST = 5
      # Probability of a change point in a series that has none.
      ALPHA = 0.01
      # A smaller change of the level is none.
      MARGIN = 0.01
      # Intervals of the next layer are shorter by this factor.
      DECAY = Math.sqrt(0.5)

      # Quantiles of the largest score of a random permutation, by the number of results. From 1,000 to 4,000
      # permutations each (benchmarks/support/change_point_quantiles.rb).
      LEVELS = [0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001].freeze
      CRITICAL = {
        10 => [1.56, 1.98, 2.19, 2.4, 2.61, 2.62, 2.62],
        14 => [1.98, 2.2, 2.46, 2.61, 2.86, 3.0, 3.13],
        20 => [2.33, 2.57, 2.74, 3.0, 3.09, 3.22, 3.47],
        30 => [2.56, 2.74, 2.95, 3.14, 3.25, 3.38, 3.61],
        50 => [2.79, 3.0, 3.19, 3.39, 3.54, 3.75, 3.94],
        100 => [3.04, 3.25, 3.42, 3.62, 3.76, 3.95, 4.27],
        200 => [3.27, 3.45, 3.63, 3.84, 4.02, 4.12, 4.43],
        500 => [3.57, 3.74, 3.94, 4.16, 4.34, 4.46, 5.03],
        1000 => [3.76, 3.92, 4.09, 4.31, 4.54, 4.59, 5.04]
      }.freeze
      private_constant :DECAY, :LEVELS, :CRITICAL

      # at: index of the first result after the change · before, after: medians of the results between this change and
      # its neighbours · ratio: after / before; nil where before is 0 · score: the statistic · p_value: probability of
      # such a score in a series of this length without a change, 0.001 at least
      Change = Struct.new(:at, :before, :after, :ratio, :score, :p_value, keyword_init: true)

      module_function

      # The changes, by time.
      # @param values in the order they were measured
      #: (Array[Numeric], ?alpha: Float, ?margin: Float) -> Array[Change]
      def of(values, alpha: ALPHA, margin: MARGIN)
        return [] if values.size < 2 * LEAST

        threshold = critical(values.size, alpha)
        cuts = significant(values, threshold)
        cuts = settle(values, cuts, threshold) if cuts.any?
        kept(values, cuts, margin)
      end

      # The largest score of all intervals.
      #: (Array[Numeric]) -> Float
      def score(values) = scan(values).map(&:first).max || 0.0

      # The probability that a series of this many results has at least this score without a change.
      # @return [Float] 0.001 at least; 1.0 above 0.2
      #: (Integer, Float) -> Float
      def p_value(size, score)
        quantiles = quantiles(size)
        return 1.0 if score < quantiles.first
        return LEVELS.last if score >= quantiles.last

        above = quantiles.index { |quantile| quantile > score }
        share = (score - quantiles[above - 1]) / (quantiles[above] - quantiles[above - 1])
        Math.exp(Math.log(LEVELS[above - 1]) + (share * Math.log(LEVELS[above] / LEVELS[above - 1])))
      end

      # The score that `alpha` of all series of this length reach without a change.
      # @param alpha one of LEVELS
      #: (Integer, Float) -> Float
      def critical(size, alpha)
        at = LEVELS.index(alpha) or raise ArgumentError, "#{alpha}: one of #{LEVELS.join(", ")}"
        quantiles(size)[at]
      end

      # [score, from, to, cut] of each interval.
      # @api private
      def scan(values)
        intervals(values.size).map { |from, to| [*best(values[from...to]), from, to] }
                              .map { |score, cut, from, to| [score, from, to, from + cut] }
      end

      # All seeded intervals: [from, to).
      # @api private
      def intervals(size)
        found = []
        length = size.to_f
        while length.ceil >= 2 * LEAST
          width = length.ceil
          count = (2 * (size / length).ceil) - 1
          step = count == 1 ? 0 : (size - width).fdiv(count - 1)
          count.times { |number| (number * step).floor.then { |from| found << [from, from + width] } }
          length *= DECAY
        end
        found.uniq
      end

      # The largest standardised rank sum, and where. Ties share their mean rank.
      # @return [Array(Float, Integer)]
      # @api private
      def best(values)
        size = values.size
        ranks, ties = ranks(values)
        spread = (size + 1) - (ties / (size * (size - 1.0)))
        return [0.0, LEAST] unless spread > 1e-9

        middle = (size + 1) / 2.0
        sum = 0.0
        top, cut = 0.0, LEAST
        (1..(size - LEAST)).each do |before|
          sum += ranks[before - 1] - middle
          next if before < LEAST

          score = sum * sum * 12 / (before * (size - before) * spread)
          top, cut = score, before if score > top
        end
        [Math.sqrt(top), cut]
      end

      def ranks(values)
        order = values.each_index.sort_by { |index| values[index] }
        ranks = Array.new(values.size)
        ties = 0
        at = 0
        while at < order.size
          last = at
          last += 1 while last + 1 < order.size && values[order[last + 1]] == values[order[at]]
          (at..last).each { |place| ranks[order[place]] = ((at + last) / 2.0) + 1 }
          count = last - at + 1
          ties += (count**3) - count
          at = last + 1
        end
        [ranks, ties]
      end

      # The cuts of significant intervals, the shortest first. An interval that holds a cut already is left out.
      def significant(values, threshold)
        found = scan(values).select { |score, *| score >= threshold }
        cuts = []
        found.sort_by { |score, from, to, _| [to - from, -score] }.each do |_, from, to, cut|
          cuts << cut if cuts.none? { |other| other > from && other < to }
        end
        cuts.sort
      end

      # Moves each cut to the best place between its neighbours. A cut that is not significant there goes, the weakest
      # first.
      def settle(values, cuts, threshold)
        loop do
          cuts = cuts.each_index.map { |index| place(values, cuts, index) }
          weakest = cuts.min_by(&:first)
          break cuts if weakest.nil? || weakest.first >= threshold

          cuts = (cuts - [weakest]).map(&:last)
          break [] if cuts.empty?
        end
      end

      def place(values, cuts, index)
        from = index.zero? ? 0 : cuts[index - 1]
        to = cuts.fetch(index + 1, values.size)
        return [0.0, cuts[index]] if to - from < 2 * LEAST

        score, cut = best(values[from...to])
        [score, from + cut]
      end

      # Changes of at least the margin. Without a smaller one its neighbours have other levels.
      def kept(values, cuts, margin)
        loop do
          changes = changes(values, cuts)
          small = changes.reject { |change| large?(change, margin) }.min_by(&:score)
          return changes if small.nil?

          cuts = cuts.reject { |_, cut| cut == small.at }
        end
      end

      def changes(values, cuts)
        cuts.each_with_index.map do |(score, cut), index|
          before = Statistics.median(values[(index.zero? ? 0 : cuts[index - 1].last)...cut])
          after = Statistics.median(values[cut...(cuts[index + 1]&.last || values.size)])
          Change.new(at: cut, before: before, after: after, ratio: before.zero? ? nil : after / before, score: score,
                     p_value: p_value(values.size, score))
        end
      end

      def large?(change, margin)
        change.ratio.nil? ? change.after != 0 : (change.ratio - 1).abs >= margin
      end

      # Quantiles of any length: linear in the logarithm of the length.
      def quantiles(size)
        sizes = CRITICAL.keys
        return CRITICAL[sizes.first] if size <= sizes.first
        return CRITICAL[sizes.last] if size >= sizes.last

        above = sizes.index { |known| known >= size }
        low, high = sizes[above - 1], sizes[above]
        share = Math.log(size.fdiv(low)) / Math.log(high.fdiv(low))
        CRITICAL[low].zip(CRITICAL[high]).map { |one, other| one + (share * (other - one)) }
      end
      private_class_method :ranks, :significant, :settle, :place, :kept, :changes, :large?, :quantiles
    end
  end
end
