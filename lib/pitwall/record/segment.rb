# frozen_string_literal: true

module Pitwall
  module Record
    # One process in a recording (or one start/stop within it). Tables are parallel arrays indexed by id; treat as
    # frozen.
    #
    # The chunk types add the readers: a class in record/chunks/ that says `offers :sites` adds Segment#sites.
    class Segment
      # A segment with empty tables, to be filled by #with.
      # @api private
      #: () -> Segment
      def self.empty
        require "pitwall/record/segment_builder"
        SegmentBuilder.new(Budget.new(Chunks.limits), salvage: false).finish
      end

      # @param parts [Hash{Symbol => Object}] values of the instance variables, by name
      # @api private
      #: (Hash[Symbol, untyped]) -> void
      def initialize(parts)
        assign(parts)
      end

      # @return [Object, nil] the recording of the segment, where several recordings are read together
      attr_reader :recording

      # @return [Array(Integer, Integer), nil] the part of its time that a filter kept, in ns since the start; nil: all
      attr_reader :window
      # @return [Integer, nil] the node of rows that a filter left out, which stay so that a thread's rows have no gaps
      attr_reader :gap

      # The segment before filters; itself where none was applied.
      #: () -> Segment
      def source = @unfiltered || self

      # A copy with some parts replaced. The other parts are shared.
      # @param parts the attributes by name
      #: (**untyped) -> Segment
      def with(**parts) = dup.tap { |copy| copy.assign(parts) }

      protected

      def assign(parts)
        parts.each { |name, value| instance_variable_set(:"@#{name}", value) }
      end
    end
  end
end
