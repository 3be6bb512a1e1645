# frozen_string_literal: true

require "pitwall/record/limits"
require "pitwall/record/malformed"

module Pitwall
  module Record
    module Import
      # Typed values of parsed files. Each method returns a value of its type, or raises Malformed and says what is
      # wrong with `what`.
      # @api private
      module Values
        # The highest line of a source file.
        LINES = 1 << 31
        # ns of 1 of a unit, by the names that tools give to units.
        UNITS = { "nanoseconds" => 1, "ns" => 1, "nanosecond" => 1, "microseconds" => 1000, "us" => 1000, "µs" => 1000,
                  "μs" => 1000, "milliseconds" => 1_000_000, "ms" => 1_000_000,
                  "seconds" => 1_000_000_000, "s" => 1_000_000_000 }.freeze

        private

        def object(value, what) = value.is_a?(Hash) ? value : wrong(what, "an object", value)
        def list(value, what) = value.is_a?(Array) ? value : wrong(what, "a list", value)
        def string(value, what) = value.is_a?(String) ? value : wrong(what, "text", value)

        # A name: text, "" for nil.
        def name(value, what) = value.nil? ? "" : string(value, what)

        # An integer from 0; floats that are whole count.
        def count(value, what)
          value = value.to_i if value.is_a?(Float) && value.finite? && value == value.floor && value.abs < Limits::VALUE
          return value if value.is_a?(Integer) && value.between?(0, Limits::VALUE - 1)

          wrong(what, "a count", value)
        end

        # An index of a list.
        def index(value, size, what)
          return value if value.is_a?(Integer) && value.between?(0, size - 1)

          wrong(what, "a number below #{size}", value)
        end

        # A finite number as an exact fraction.
        def number(value, what)
          return value.to_r if value.is_a?(Integer) || value.is_a?(Float) && value.finite?

          wrong(what, "a number", value)
        end

        # A duration or weight in whole ns or counts: `value` units of `unit`.
        def amount(value, what, unit = 1)
          value = value.is_a?(Integer) ? value * unit : (number(value, what) * unit).round
          return value if value.between?(0, Limits::VALUE - 1)

          wrong(what, "an amount from 0 to 2**60", value)
        end

        # A line number, 0 where the value is none.
        def line(value) = value.is_a?(Integer) && value.between?(1, LINES) ? value : 0

        # A process or thread id, nil where the value is none. Some tools write them as text.
        def id(value)
          value = value.to_i if value.is_a?(String) && value.match?(/\A\d{1,18}/)
          value = value.to_i if value.is_a?(Float) && value.finite?
          value if value.is_a?(Integer) && value.between?(0, 1 << 59)
        end

        # @raise [Malformed]
        def wrong(what, expected, value)
          shown = value.is_a?(Hash) || value.is_a?(Array) ? "a #{value.class}".sub("Hash", "object") : value.inspect
          raise Malformed, "is damaged: #{what} is #{shown.slice(0, 40)}, not #{expected}"
        end
      end
      private_constant :Values
    end
  end
end
