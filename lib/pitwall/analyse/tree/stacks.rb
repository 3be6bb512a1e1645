# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree_builder"

module Pitwall
  module Analyse
    # The stacks of several segments as one tree without weights, with a map from each segment's nodes to the tree's.
    # For users that read rows and not sums.
    class Stacks
      # @return [CallTree]
      attr_reader :tree

      #: (Array[Record::Segment], ?Selection) -> void
      def initialize(segments, selection = Selection.all)
        builder = CallTreeBuilder.new([])
        @shifts = {}.compare_by_identity
        segments.each { |segment| @shifts[segment] = builder.add(segment, selection) }
        @tree = builder.tree
      end

      # The tree's node for a segment's node. A stack that could not be read is "(no stack)".
      #: (Record::Segment, Integer) -> Integer
      def node(segment, id) = id.zero? ? 1 : id + @shifts.fetch(segment)
    end
  end
end
