# frozen_string_literal: true

require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Formats measured values and ratios. The interval's width decides the number of digits.
    # A ratio has enough digits to tell the interval's bounds from 1.
    module Figures
      NOTHING = "–"
      # Ratios outside of these limits are shown as factors ("×3.12"), others as percentages ("+2.1%").
      FACTORS = [0.5, 2.0].freeze
      TIMES = [[1_000_000_000, "s"], [1_000_000, "ms"], [1_000, "µs"]].freeze
      # Decimals of a percentage, at most.
      MAX_DECIMALS = 5
      # A ratio whose interval's high end is more than this many times the low end is not shown.
      WIDEST = 100
      SUFFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"]].freeze
      private_constant :FACTORS, :TIMES, :MAX_DECIMALS, :SUFFIXES, :WIDEST

      module_function

      # A value with its unit: 12_345_678.9, "ns" → "12.35 ms"; 1204.0, "count" → "1,204"; 0.0333, "count" → "0.0333".
      # @param unit [String] "ns", "bytes" or "count"
      # @param figures [Integer] significant figures of a time or a fraction
      #: (Numeric?, String, ?figures: Integer) -> String
      def value(number, unit, figures: 4)
        return NOTHING unless number && number.to_f.finite?

        case unit
        when "ns" then duration(number, figures)
        when "bytes" then number.abs < 1024 ? "#{plain(number, figures)} B" : Units.bytes(number)
        else plain(number, figures)
        end
      end

      # A change as a signed percentage, or as a factor where it is large: 1.021 → "+2.1%", 0.2 → "×0.200".
      # @param ratio [Analyse::Estimate, nil]
      #: (Analyse::Estimate?) -> String
      def change(ratio)
        return NOTHING unless sized?(ratio)
        return ratio.point.zero? ? "to 0" : "×#{factor(ratio.point)}" if factor?(ratio)

        signed(ratio.point, decimals(ratio))
      end

      # A ratio's interval: "+1.4% … +2.8%" or "×3.05 … ×3.20".
      #: (Analyse::Estimate?) -> String
      def range(ratio)
        return NOTHING unless sized?(ratio)
        return "×#{factor(ratio.low)} … ×#{factor(ratio.high)}" if factor?(ratio)

        "#{signed(ratio.low, decimals(ratio))} … #{signed(ratio.high, decimals(ratio))}"
      end

      # A ratio in words: "2.1% more", "3.12 times", "0.4% less", "equal".
      # @param less [String] the word for ratios below 1
      #: (Analyse::Estimate, ?less: String) -> String
      def change_in_words(ratio, less: "less")
        return "#{factor(ratio.point)} times" if factor?(ratio)

        size = size(ratio.point, decimals(ratio))
        size.match?(/[1-9]/) ? "#{size} #{direction(ratio.point, less)}" : "equal"
      end

      # A ratio's interval in words: "1.4% … 2.8% more", "0.4% less … 0.6% more", "3.05 … 3.20 times".
      # @param less [String] the word for ratios below 1
      #: (Analyse::Estimate, ?less: String) -> String
      def range_in_words(ratio, less: "less")
        return "#{factor(ratio.low)} … #{factor(ratio.high)} times" if factor?(ratio)

        ends = [ratio.low, ratio.high]
        words = ends.map { |bound| direction(bound, less) }
        sizes = ends.map { |bound| size(bound, decimals(ratio)) }
        return "#{sizes.join(" … ")} #{words.first}" if words.uniq.size == 1

        sizes.zip(words).map { |pair| pair.join(" ") }.join(" … ")
      end

      # A factor with its interval: "2.31 (2.20 … 2.42)".
      #: (Analyse::Estimate?) -> String
      def times(estimate)
        return NOTHING unless known?(estimate)

        "#{factor(estimate.point)} (#{factor(estimate.low)} … #{factor(estimate.high)})"
      end

      # A share as a percentage of three figures: 0.01 → "1%", 0.0125 → "1.25%".
      #: (Float) -> String
      def share(part) = "#{format("%.3g", part * 100)}%"

      # An estimated share as a percentage of two figures: 0.01234 → "1.2%".
      #: (Float) -> String
      def rough(part) = "#{part >= 0.1 ? (part * 100).round : format("%.2g", part * 100)}%"

      # A rate per second: "81.3 /s", "1.25 M/s".
      #: (Numeric?) -> String
      def rate(number)
        return NOTHING unless number && number.to_f.finite?

        prefixes = [[1e9, "G"], [1e6, "M"], [1e3, "k"]]
        size, prefix = prefixes.find { |candidate, _| number >= candidate * 0.99995 } || [1, ""]
        "#{significant(number / size.to_f, 4)} #{prefix}/s"
      end

      # Half of the interval's width, relative to the point: "±1.2%".
      #: (Analyse::Estimate?) -> String
      def doubt(estimate)
        return NOTHING unless known?(estimate) && estimate.point.positive?

        half = (estimate.high - estimate.low) / 2.0 / estimate.point * 100
        "±#{half >= 9.95 ? half.round : significant(half, 2)}%"
      end

      # Whether an estimate has a point and an interval. A ratio without an interval is not shown.
      #: (Analyse::Estimate?) -> bool
      def known?(estimate) = !estimate.nil? && !estimate.point.nil? && estimate.interval?

      # Whether a ratio's interval is narrow enough to show the ratio. From two pairs the interval may range from a
      # millionth to a million.
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

      # Number of decimals of a percentage: enough for the interval's width, and enough to tell a bound from 1.
      def decimals(ratio)
        half = [ratio.high - ratio.point, ratio.point - ratio.low].max * 100
        half = (ratio.point - 1).abs * 100 if half.zero?
        least = half >= 10 ? 0 : half >= 0.1 ? 1 : 2
        bounds = [ratio.low, ratio.high].reject { |bound| bound == 1 }
        enough = (least..MAX_DECIMALS).find do |digits|
          bounds.all? { |bound| ((bound - 1) * 100).round(digits).nonzero? }
        end
        enough || MAX_DECIMALS
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
