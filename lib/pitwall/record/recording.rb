# frozen_string_literal: true

module Pitwall
  module Record
    # A recording in memory: its processes, and warnings about what could not be read.
    class Recording
      # @return [String] the path that was given
      attr_reader :path
      # @return [Integer] bytes of the file
      attr_reader :bytes
      # @return [Array<Segment>] in the order of the file
      attr_reader :segments
      # @return [Array<Warning>]
      attr_reader :warnings

      #: (String, Integer, Array[Segment], Array[Warning]) -> void
      def initialize(path, bytes, segments, warnings)
        @path = path
        @bytes = bytes
        @segments = segments
        @warnings = warnings
      end
    end
  end
end
