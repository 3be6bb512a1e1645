# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  # Reads and writes times as people type them: `100us`, `1.5ms`, `10 s`.
  # @api private
  module Duration
    UNITS = { "ns" => 1, "us" => 1_000, "µs" => 1_000, "ms" => 1_000_000, "s" => 1_000_000_000 }.freeze
    private_constant :UNITS

    module_function

    # The time in nanoseconds: "1.5ms" → 1500000.
    # @param name the option's name, for errors
    # @param range allowed times in nanoseconds
    # Raises UsageError when the text has no unit or the time lies outside the range.
    #: (String, name: String, range: Range[Integer]) -> Integer
    def parse(text, name:, range:)
      _, number, unit = *text.match(/\A(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)\z/)
      raise UsageError, "#{name} #{text}: not a time; write a number and a unit: 100us, 1ms, 0.5s" unless unit

      ns = (Rational(number) * UNITS.fetch(unit)).round
      return ns if range.cover?(ns)

      raise UsageError, "#{name} #{text}: out of range; it takes #{format(range.begin)} to #{format(range.end)}"
    end

    # A number of nanoseconds in the largest unit that gives at least 1: 1500000 → "1.5ms".
    #: (Integer) -> String
    def format(ns)
      unit, size = UNITS.select { |name, length| name != "µs" && length <= [ns, 1].max }.max_by(&:last)
      "#{(ns % size).zero? ? ns / size : ns.fdiv(size).round(3)}#{unit}"
    end
  end
end
