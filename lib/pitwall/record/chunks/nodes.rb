# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    module Chunks
      # NODE: the tree of stacks. A node is a frame and its running line under the caller's node, so it stands for a
      # whole stack. Node 0, the root, is the empty stack.
      class Nodes < Chunk
        type "NODE"
        limit :nodes, 8_000_000
        # @return [Array<Integer>] by node id: the caller's node; node 0 is its own
        offers :parents
        # @return [Array<Integer>] by node id: the frame's id
        offers :node_frames
        # @return [Array<Integer>] by node id: the line that was running, 0 where none
        offers :lines

        def initialize(...)
          super
          @parents = [0]
          @node_frames = [0]
          @lines = [0]
        end

        #: (Columns) -> void
        def read_columns(columns)
          first = columns.int
          count = columns.int
          distances, frames, lines = %w[parent frame line].map { |name| columns.column(count, name) }
          parents = parents_of(first, distances)
          expect_next(first, size, "node")
          take(:nodes, count + first - size)
          fill(first - size) if first > size
          @parents.concat(parents)
          @node_frames.concat(frames)
          @lines.concat(lines)
        end

        #: () -> Integer
        def size = @parents.size

        # A node that rows name is written before them. Salvage accepts lost ones.
        # @param highest [Integer] the highest id that a chunk names
        # @raise [Malformed]
        #: (Integer) -> void
        def check(highest)
          raise Malformed, "names node #{highest} of #{size}" unless highest < size || salvage?
        end

        # The node itself, or the root for a lost one.
        #: (Integer) -> Integer
        def known(node) = node < size ? node : 0

        private

        def parents_of(first, distances)
          raise Malformed, "numbers its nodes from 0" if first.zero?

          id = first
          distances.map do |distance|
            parent = id - distance
            raise Malformed, "has a node whose parent is not before it" if distance.zero? || parent.negative?

            id += 1
            parent
          end
        end

        # Lost nodes are put under the root, with a frame that says so.
        def fill(count)
          lose(count)
          @parents.concat(Array.new(count, 0))
          @node_frames.concat(Array.new(count, table(Frames).lost_stack))
          @lines.concat(Array.new(count, 0))
        end
      end
    end

    class Segment
      # The frame of a node; one named "(unresolved)" where the process ended before it wrote the name.
      #: (Integer) -> Frame
      def frame(node_id)
        id = node_frames[node_id]
        frames[id] || Frame.unresolved(id)
      end
    end
  end
end
