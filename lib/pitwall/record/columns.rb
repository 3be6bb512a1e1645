# frozen_string_literal: true

require "pitwall/record/limits"
require "pitwall/record/malformed"

module Pitwall
  module Record
    # Decodes a payload from left to right: ints, columns and run columns. Checks every length before using it.
    # @api private
    class Columns
      # Bytes of the longest BER int: 63 bits.
      INT_BYTES = 9
      private_constant :INT_BYTES

      #: (String) -> void
      def initialize(payload)
        @payload = payload
        @at = 0
      end

      # One unsigned int, e.g. "\x81\x00" is 128.
      #: () -> Integer
      def int
        value = 0
        INT_BYTES.times do
          byte = @payload.getbyte(@at) or raise Malformed, "ends inside a number"
          @at += 1
          value = value << 7 | byte & 0x7f
          return value if byte < 0x80
        end
        raise Malformed, "has a number that is too large"
      end

      # A column: one int for each row of the chunk.
      #: (Integer, String) -> Array[Integer]
      def column(rows, name)
        values = ints(name)
        raise Malformed, "has #{values.size} values in column #{name} for #{rows} rows" unless values.size == rows

        values
      end

      # A run column: values, each with the number of rows that have it, as one list [value, rows, value, rows…].
      #: (Integer, String) -> Array[Integer]
      def runs(rows, name)
        pairs = ints(name)
        raise Malformed, "has half a run in column #{name}" if pairs.size.odd?

        covered = 0
        at = 1
        while at < pairs.size
          count = pairs[at]
          raise Malformed, "has an empty run in column #{name}" if count.zero?

          covered += count
          at += 2
        end
        raise Malformed, "covers #{covered} rows of #{rows} in column #{name}" unless covered == rows

        pairs
      end

      # Whether bytes are left. Newer recordings have more columns at the end of some chunks.
      #: () -> bool
      def more? = @at < @payload.bytesize

      # All bytes that are left.
      #: () -> String
      def rest
        @payload.byteslice(@at..)
      end

      private

      def ints(name)
        size = int
        raise Malformed, "ends inside column #{name}" if size > @payload.bytesize - @at
        return [] if size.zero?
        raise Malformed, "cuts a number in column #{name}" if @payload.getbyte(@at + size - 1) > 0x7f

        values = @payload.byteslice(@at, size).unpack("w*")
        @at += size
        raise Malformed, "has a number that is too large in column #{name}" if values.max >= Limits::VALUE

        values
      end
    end
    private_constant :Columns
  end
end
