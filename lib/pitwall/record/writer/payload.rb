# frozen_string_literal: true

require "json"
require "zlib"
require "pitwall/record/limits"
require "pitwall/record/malformed"

module Pitwall
  module Record
    class Writer
      # Encodes chunks and their columns.
      # @api private
      module Payload
        module_function

        # A chunk with its header, not compressed.
        #: (String, String) -> String
        def chunk(type, payload)
          raise Malformed, "needs a chunk #{type} of #{payload.bytesize} bytes" if payload.bytesize > Limits::RAW

          [type, 0, "\0\0\0", payload.bytesize, payload.bytesize, Zlib.crc32(payload)].pack("a4Ca3V3") << payload
        end

        #: (String, Hash[String, untyped]) -> String
        def json(type, object) = chunk(type, JSON.generate(object).b)

        # A chunk of int fields and columns.
        # @param ints [Array<Integer>] the fields before the number of rows
        # @param columns [Array<Array<Integer>>] all of the same size
        #: (String, Array[Array[Integer]], ?ints: Array[Integer]) -> String
        def table(type, columns, ints: [])
          chunk(type, ints([*ints, columns.first.size]) + columns.map { |values| column(values) }.join)
        end

        #: (Array[Integer]) -> String
        def ints(values) = checked(values).pack("w*")

        #: (Array[Integer]) -> String
        def column(values)
          bytes = checked(values).pack("w*")
          [bytes.bytesize].pack("w") << bytes
        end

        # A run column: pairs of a value and the number of rows that have it.
        #: (Array[Integer]) -> String
        def runs(values)
          pairs = []
          values.each { |value| value == pairs[-2] && !pairs.empty? ? pairs[-1] += 1 : pairs.push(value, 1) }
          column(pairs)
        end

        # @raise [Malformed] a value that no recording holds
        #: (Array[Integer]) -> Array[Integer]
        def checked(values)
          wrong = values.find { |value| !value.is_a?(Integer) } unless values.all?(Integer)
          wrong ||= values.minmax.find { |value| value && !value.between?(0, Limits::VALUE - 1) }
          return values unless wrong

          raise Malformed, "has a figure of #{wrong}: a recording holds integers from 0 to #{Limits::VALUE - 1}"
        end
      end
      private_constant :Payload
    end
  end
end
