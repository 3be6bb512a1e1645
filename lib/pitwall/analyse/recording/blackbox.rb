# frozen_string_literal: true

require "pitwall/analyse/recording/frame_filter"

module Pitwall
  module Analyse
    # Leaves out what certain frames called: their callees' weight becomes theirs. Folding.blackbox does the same to a
    # tree. The class changes segments, for exports of single rows and for comparisons.
    class Blackbox < FrameFilter
      # @param folded [#call] frame → bool: is everything below it folded into it?
      #: (^(Record::Frame?) -> bool) -> void
      def initialize(folded)
        super
        @folded = folded
      end

      # By node: the outermost folded node at or above it, or the node itself.
      #: (Record::Segment, other: Integer) -> Array[Integer]
      def targets(segment, other:) # rubocop:disable Lint/UnusedMethodArgument
        wanted = Hash.new { |known, id| known[id] = @folded.call(segment.frames[id]) }
        boxes = []
        segment.parents.each_with_index.map do |parent, node|
          next 0 if node.zero?

          boxes[node] = boxes[parent] || (node if wanted[segment.node_frames[node]])
          boxes[node] || node
        end
      end
    end
  end
end
