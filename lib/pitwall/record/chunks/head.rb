# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/header"

module Pitwall
  module Record
    module Chunks
      # HEAD: how the segment was recorded. The first chunk of a segment.
      class Head < Chunk
        type "HEAD"
        # @return [Header]
        offers :header

        #: (String, Integer) -> void
        def read(payload, _offset)
          raise Malformed, "is a second HEAD in one segment" if read?

          @header = Header.new(Header.parse_object(payload))
        end

        #: () -> bool
        def read? = !@header.nil?

        # Salvage reads segments whose HEAD was lost.
        def parts = { header: @header || Header.new({}) }
      end
    end

    class Segment
      # Nanoseconds that 1 in a wall or cpu column stands for.
      #: () -> Integer
      def unit_ns = header.unit_ns
    end
  end
end
