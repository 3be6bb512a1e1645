# frozen_string_literal: true

module Benchmarks
  # E-divisive (Matteson and James 2014, "A nonparametric approach for multiple change point analysis of multivariate
  # data") with a permutation test, by its definition: the reference beside Pitwall's own change points. Slow on
  # purpose: each test looks at every place and every end of the part after it.
  module EDivisive
    LEAST = 5
    PERMUTATIONS = 99
    ALPHA = 0.01
    private_constant :LEAST, :PERMUTATIONS, :ALPHA

    class << self
      # Indexes of the first values after each change.
      #: (Array[Numeric], random: Random) -> Array[Integer]
      def of(values, random:)
        cuts = []
        loop do
          parts = [0, *cuts, values.size].each_cons(2).to_a
          best = parts.filter_map { |from, to| strongest(values[from...to])&.then { |q, at| [q, from + at] } }.max
          break if best.nil? || !significant?(values, parts, best.first, random)

          cuts = [*cuts, best.last].sort
        end
        cuts
      end

      # The largest statistic of a part, and where: [Float, Integer]; nil for a short part.
      #: (Array[Numeric]) -> [Float, Integer]?
      def strongest(values)
        size = values.size
        return if size < 2 * LEAST

        # sums[i]: distances of value i to all values before it
        before = prefix(values)
        best = nil
        (LEAST..(size - LEAST)).each do |at|
          between = within = 0.0
          left = pairs(before, 0, at)
          (at...size).each do |last|
            between += before[last][at]
            within += before[last][last] - before[last][at]
            many = last + 1 - at
            next if many < LEAST

            energy = (2 * between / (at * many)) - (2 * left / (at * (at - 1.0))) - (2 * within / (many * (many - 1.0)))
            statistic = energy * at * many / (at + many)
            best = [statistic, at] if best.nil? || statistic > best.first
          end
        end
        best
      end

      private

      # prefix[i][j]: sum of the distances of value i to the first j values.
      def prefix(values)
        values.map do |value|
          sum = 0.0
          [0.0] + values.map { |other| sum += (value - other).abs }
        end
      end

      def pairs(before, from, to) = (from...to).sum { |index| before[index][index] - before[index][from] }

      # Values are shuffled within the parts that earlier changes have made.
      def significant?(values, parts, statistic, random)
        most = ALPHA * (PERMUTATIONS + 1)
        larger = 1
        PERMUTATIONS.times do
          shuffled = parts.filter_map { |from, to| strongest(values[from...to].shuffle(random: random))&.first }.max
          larger += 1 if shuffled >= statistic
          return false if larger > most
        end
        true
      end
    end
  end
end
