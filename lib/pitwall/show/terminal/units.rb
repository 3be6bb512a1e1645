# frozen_string_literal: true

module Pitwall
  module Show
    # Formats numbers with their units for people.
    module Units
      NS = [[1_000_000_000, "s"], [1_000_000, "ms"], [1_000, "µs"]].freeze
      BYTES = [[1 << 40, "TiB"], [1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]].freeze
      # From this many ns on, durations are in minutes: 10 min.
      MINUTES = 600_000_000_000
      # From this many ns on, durations are in hours: 6 h.
      HOURS = 360 * 60_000_000_000
      TIMES = %i[wall cpu wait gc].freeze
      private_constant :TIMES, :NS, :BYTES, :MINUTES, :HOURS

      module_function

      # A duration of three figures: 1_234_000_000 → "1.23 s", 45_600_000 → "45.6 ms", 0 → "0 s", 10**12 → "16.7 min".
      #: (Integer) -> String
      def duration(nanoseconds)
        return "0 s" if nanoseconds.zero?
        return "#{three(nanoseconds.fdiv(3_600_000_000_000))} h" if nanoseconds >= HOURS
        return "#{three(nanoseconds.fdiv(60_000_000_000))} min" if nanoseconds >= MINUTES

        # Rounding decides the unit: 999.6 µs is 1.00 ms, not 1000 µs.
        size, unit = NS.find { |candidate, _| nanoseconds >= candidate * 0.9995 }
        size ? "#{three(nanoseconds.fdiv(size))} #{unit}" : "#{nanoseconds} ns"
      end

      # A duration with all of its figures, as the user typed it: 1_000_000 → "1 ms", 2_500_000 → "2.5 ms".
      #: (Integer) -> String
      def interval(nanoseconds)
        size, unit = NS.find { |candidate, _| nanoseconds >= candidate } || [1, "ns"]
        "#{(nanoseconds % size).zero? ? nanoseconds / size : nanoseconds.fdiv(size)} #{unit}"
      end

      # A count with separators: 1_234_567 → "1,234,567".
      #: (Integer) -> String
      def count(number) = number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")

      # An estimated count. The number of sampled objects (`of`) decides the number of figures, at most three:
      # 12_345 from a sample of 150 → "~12,000".
      #: (Integer, of: Integer) -> String
      def about(number, of:)
        figures = of < 100 ? 1 : of < 10_000 ? 2 : 3
        "~#{count(number.round(figures - number.digits.size))}"
      end

      # A mean of counts: 6, 3 → "2"; 5, 2 → "2.50"; 1, 1000 → "<0.01"
      #: (Integer, Integer) -> String
      def mean(sum, pieces)
        return count(sum / pieces) if (sum % pieces).zero?

        mean = sum.fdiv(pieces)
        return "<0.01" if mean < 0.005

        mean < 99.95 ? three(mean) : count(mean.round)
      end

      # A count with a noun: 1, "row" → "1 row"; 1_234, "more row" → "1,234 more rows".
      #: (Integer, String) -> String
      def things(number, noun) = "#{count(number)} #{noun}#{"s" unless number == 1}"

      # A part as a percentage of the whole: "45.2%", "100%". "<0.1%" for a part that is not 0 but rounds to 0.
      #: (Integer, Integer) -> String
      def percent(part, whole)
        return "0.0%" if part.zero? || whole.zero?
        return "100%" if part == whole

        share = part.fdiv(whole) * 100
        share < 0.05 ? "<0.1%" : format("%.1f%%", share)
      end

      # A number of bytes in binary units: 8_589_934_592 → "8.00 GiB".
      #: (Integer) -> String
      def bytes(number)
        size, unit = BYTES.find { |candidate, _| number >= candidate }
        size ? "#{three(number.fdiv(size))} #{unit}" : "#{number} B"
      end

      # A weight's value: a duration, bytes or a count.
      #: (Integer, Symbol) -> String
      def value(number, weight)
        return bytes(number) if weight == :bytes

        TIMES.include?(weight) ? duration(number) : count(number)
      end

      # Name of a sum over a method and all methods that it calls. "calls" alone would mean the method's own calls.
      #: (Symbol) -> String
      def sum_name(weight) = weight == :calls ? "calls below" : weight.to_s

      # A weight's unit in JSON: :wall → "ns", :bytes → "bytes".
      #: (Symbol) -> String
      def unit(weight) = TIMES.include?(weight) ? "ns" : weight.to_s

      def three(number)
        digits = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2
        format("%.#{digits}f", number)
      end
      private_class_method :three
    end
  end
end
