# frozen_string_literal: true

require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Measured values and ratios for people: no more digits than the doubt leaves, and never fewer than tell a bound from 1.
    module Figures
      NOTHING = "–"
      # Ratios beyond these read better as factors than as percentages.
      FACTORS = [0.5, 2.0].freeze
      TIMES = [[1_000_000_000, "s"], [1_000_000, "ms"], [1_000, "µs"]].freeze
      # The most decimals of a percentage.
      FINEST = 5
      # A ratio whose interval is wider has no size.
      WIDEST = 100
      SUFFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"]].freeze
      private_constant :FACTORS, :TIMES, :FINEST, :SUFFIXES, :WIDEST

      module_function

      # 12_345_678.9, "ns" → "12.35 ms"; 1204.0, "count" → "1,204"; 0.0333, "count" → "0.0333".
      # @param figures [Integer] significant ones of a time or a fraction
      #: (Numeric?, String, ?figures: Integer) -> String
      def value(number, unit, figures: 4)
        return NOTHING unless number && number.to_f.finite?

        case unit
        when "ns" then duration(number, figures)
        when "bytes" then number.abs < 1024 ? "#{plain(number, figures)} B" : Units.bytes(number)
        else plain(number, figures)
        end
      end

      # A change as a signed percentage, or a factor where that is large: 1.021 → "+2.1%", 0.2 → "×0.200".
      # @param ratio [Analyse::Estimate, nil]
      #: (Analyse::Estimate?) -> String
      def change(ratio)
        return NOTHING unless sized?(ratio)
        return ratio.point.zero? ? "to 0" : "×#{factor(ratio.point)}" if factor?(ratio)

        signed(ratio.point, decimals(ratio))
      end

      # "+1.4% … +2.8%" or "×3.05 … ×3.20".
      #: (Analyse::Estimate?) -> String
      def range(ratio)
        return NOTHING unless sized?(ratio)
        return "×#{factor(ratio.low)} … ×#{factor(ratio.high)}" if factor?(ratio)

        "#{signed(ratio.low, decimals(ratio))} … #{signed(ratio.high, decimals(ratio))}"
      end

      # "2.1% more", "3.12 times", "0.4% less", "equal".
      #: (Analyse::Estimate, ?less: String) -> String
      def change_in_words(ratio, less: "less")
        return "#{factor(ratio.point)} times" if factor?(ratio)

        size = size(ratio.point, decimals(ratio))
        size.match?(/[1-9]/) ? "#{size} #{direction(ratio.point, less)}" : "equal"
      end

      # "1.4% … 2.8% more", "0.4% less … 0.6% more", "3.05 … 3.20 times".
      #: (Analyse::Estimate, ?less: String) -> String
      def range_in_words(ratio, less: "less")
        return "#{factor(ratio.low)} … #{factor(ratio.high)} times" if factor?(ratio)

        ends = [ratio.low, ratio.high]
        words = ends.map { |bound| direction(bound, less) }
        sizes = ends.map { |bound| size(bound, decimals(ratio)) }
        words.uniq.size == 1 ? "#{sizes.join(" … ")} #{words.first}" : sizes.zip(words).map { |pair| pair.join(" ") }.join(" … ")
      end

      # How many times as fast, with its interval: "2.31 (2.20 … 2.42)".
      #: (Analyse::Estimate?) -> String
      def times(estimate) = known?(estimate) ? "#{factor(estimate.point)} (#{factor(estimate.low)} … #{factor(estimate.high)})" : NOTHING

      # 0.01 → "1%", 0.0125 → "1.25%"
      #: (Float) -> String
      def share(part) = "#{format("%.3g", part * 100)}%"

      # The same of what is itself an estimate: 0.01234 → "1.2%"
      #: (Float) -> String
      def rough(part) = "#{part >= 0.1 ? (part * 100).round : format("%.2g", part * 100)}%"

      # "81.3 /s", "1.25 M/s": how often in a second.
      #: (Numeric?) -> String
      def rate(number)
        return NOTHING unless number && number.to_f.finite?

        size, prefix = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find { |candidate, _| number >= candidate * 0.99995 } || [1, ""]
        "#{significant(number / size.to_f, 4)} #{prefix}/s"
      end

      # Half of an interval relative to its point: "±1.2%".
      #: (Analyse::Estimate?) -> String
      def doubt(estimate)
        return NOTHING unless known?(estimate) && estimate.point.positive?

        half = (estimate.high - estimate.low) / 2.0 / estimate.point * 100
        "±#{half >= 9.95 ? half.round : significant(half, 2)}%"
      end

      # Nothing is shown of a ratio without its interval.
      #: (Analyse::Estimate?) -> bool
      def known?(estimate) = !estimate.nil? && !estimate.point.nil? && estimate.interval?

      # Whether an interval says anything of a ratio's size: one from two pairs may go from a millionth to a million.
      #: (Analyse::Estimate?) -> bool
      def sized?(ratio) = known?(ratio) && (ratio.exact? || ratio.high <= WIDEST * ratio.low)

      def plain(number, figures)
        size, suffix = SUFFIXES.find { |candidate, _| number.abs >= candidate }
        return "#{significant(number / size, figures)} #{suffix}" if size
        return Units.count(number.round) if number == number.round || number.abs >= 10**(figures - 1)

        significant(number, figures)
      end

      def significant(number, figures)
        return "0" if number.zero?
        return format("%.1e", number).sub(/e-0/, "e-") if number.abs < 0.0001

        digits = figures - 1 - Math.log10(number.abs).floor
        digits -= 1 if number.abs.round(digits) >= 10**(figures - digits) # 0.99996 has become 1.000
        format("%.#{digits.clamp(0, 9)}f", number)
      end

      def duration(nanoseconds, figures)
        return "0 ns" if nanoseconds.zero?
        return Units.duration(nanoseconds) if nanoseconds.abs >= 600_000_000_000

        size, unit = TIMES.find { |candidate, _| nanoseconds.abs >= candidate * 0.99995 } || [1, "ns"]
        "#{significant(nanoseconds / size.to_f, figures)} #{unit}"
      end

      def factor?(ratio) = ratio.point <= FACTORS[0] || ratio.point >= FACTORS[1]

      def factor(number) = number.abs >= 100 ? Units.count(number.round) : significant(number, 3)

      # Decimals that the width of the interval deserves, and as many more as show that a bound is not 1.
      def decimals(ratio)
        half = [ratio.high - ratio.point, ratio.point - ratio.low].max * 100
        half = (ratio.point - 1).abs * 100 if half.zero?
        least = half >= 10 ? 0 : half >= 0.1 ? 1 : 2
        (least..FINEST).find { |digits| [ratio.low, ratio.high].all? { |bound| bound == 1 || ((bound - 1) * 100).round(digits).nonzero? } } || FINEST
      end

      def signed(number, digits)
        rounded = ((number - 1) * 100).round(digits)
        "#{rounded.negative? ? "−" : "+"}#{format("%.#{digits}f", rounded.abs)}%"
      end

      def size(number, digits) = "#{format("%.#{digits}f", ((number - 1) * 100).round(digits).abs)}%"

      def direction(number, less) = number < 1 ? less : "more"

      private_class_method :plain, :significant, :duration, :factor?, :factor, :decimals, :signed, :size, :direction
    end
  end
end
