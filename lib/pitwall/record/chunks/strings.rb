# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    module Chunks
      # STRS: names and paths. Other chunks name a string by its id; id 0 is the empty string.
      class Strings < Chunk
        type "STRS"
        limit :strings, 4_000_000
        limit :string_bytes, 256 * 1024 * 1024
        # @return [Array<String>] by id: names and paths of frames, names of threads, labels…
        offers :strings

        def initialize(...)
          super
          @strings = [""]
        end

        #: (Columns) -> void
        def read_columns(columns)
          first = columns.int
          count = columns.int
          lengths = columns.column(count, "lengths")
          bytes = columns.rest
          unless lengths.sum == bytes.bytesize
            raise Malformed, "has #{bytes.bytesize} bytes of strings for #{lengths.sum}"
          end

          expect_next(first, @strings.size, "string")
          take(:strings, count + first - @strings.size)
          take(:string_bytes, bytes.bytesize)
          @strings << LOST_NAME while @strings.size < first
          append(lengths, bytes)
        end

        #: () -> Integer
        def size = @strings.size

        # Ids that other chunks name must be known. Salvage accepts lost ones.
        # @param highest [Integer] the highest id that a chunk names
        # @raise [Malformed]
        #: (Integer) -> void
        def check(highest)
          return if highest < size || salvage?

          raise Malformed, "names string #{highest} of #{size}"
        end

        # The string of an id, or LOST_NAME.
        #: (Integer) -> String
        def known(id) = @strings[id] || LOST_NAME

        # The string of an id, or LOST_NAME, which is counted as lost.
        #: (Integer) -> String
        def fetch(id)
          return @strings[id] if id < size

          lose
          LOST_NAME
        end

        private

        def append(lengths, bytes)
          at = 0
          lengths.each do |length|
            @strings << text(bytes.byteslice(at, length))
            at += length
          end
        end

        # Bytes that are not UTF-8 are shown in hexadecimal: "m\xFF".
        def text(bytes)
          bytes.force_encoding(Encoding::UTF_8)
          return bytes if bytes.valid_encoding?

          bytes.scrub { |bad| bad.unpack("C*").map { |byte| format("\\x%02X", byte) }.join }
        end
      end
    end
  end
end
