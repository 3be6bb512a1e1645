# frozen_string_literal: true

require "pitwall/record/budget"
require "pitwall/record/chunks"
require "pitwall/record/malformed"
require "pitwall/record/segment"

module Pitwall
  module Record
    # Hands each chunk of one segment to the object of its type, and makes the Segment of what these hold in the end.
    # @api private
    class SegmentBuilder
      # @param budget [Budget] what all segments of the file may hold together
      #: (Budget, salvage: bool) -> void
      def initialize(budget, salvage:)
        @salvage = salvage
        @tables = {}
        Chunks.by_type.each_value { |chunk| @tables[chunk] = chunk.new(@tables, budget, salvage: salvage) }
        @by_type = @tables.transform_keys(&:type)
      end

      # @return [Boolean] whether a HEAD was read
      def headed? = @tables[Chunks::Head].read?

      # @return [Integer] names and stacks that rows refer to and the file no longer has
      def lost = @tables.each_value.sum(&:lost)

      # @return [Array<[Symbol, String]>] codes of a Warning with words about the process
      def warnings = @tables.each_value.flat_map(&:warnings)

      # Takes one chunk. Chunks of an unknown type are skipped.
      # @raise [Malformed]
      #: (String, Integer, String) -> void
      def chunk(type, offset, payload)
        raise Malformed, "stands before the segment's HEAD" unless headed? || type == Chunks::Head.type || @salvage

        @by_type[type]&.read(payload, offset)
      end

      # @yield [offset] reads the payload of the chunk at that offset again
      # @raise [Malformed]
      #: () { (Integer) -> String } -> Segment
      def finish(&payload_at)
        @tables.each_value { |table| table.settle(payload_at) }
        Segment.new(@tables.each_value.map(&:parts).reduce(:merge))
      end
    end
    private_constant :SegmentBuilder
  end
end
