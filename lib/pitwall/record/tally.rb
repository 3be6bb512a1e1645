# frozen_string_literal: true

module Pitwall
  module Record
    # The weights of one thread in one state under one label set, added up by stack. The three sums of a stack lie side
    # by side in `cells`. A million rows are added in no order of stacks, and each miss of the CPU's cache costs as much
    # as an addition.
    class Tally
      # Weights a stack: wall, cpu, captures.
      WIDTH = 3
      # Below this number of nodes in a segment, `slots` is an Array: faster than a Hash, and at most 8 MB for a thread
      # and state.
      DENSE_NODES = 1_000_000
      private_constant :DENSE_NODES

      # @return [Integer] the thread's id in the segment
      attr_reader :thread_id
      # @return [Integer] 0 running, 1 waiting for the GVL, 2 blocked, 3 unknown, 4 off the CPU
      attr_reader :state
      # @return [Integer] the label set's number in the segment, 0 for none
      attr_reader :label_id
      # @return [Array<Integer>] ids of the stacks' leaves, in the order of the cells
      attr_reader :node_ids
      # @return [Array<Integer>] wall, cpu (both in the segment's unit_ns) and captures of the first stack, the second…
      attr_reader :cells
      # @api private
      # @return [Array, Hash] node id → place of its wall in the cells
      attr_reader :slots

      #: (Integer, Integer, ?Integer, ?Integer) -> void
      def initialize(thread_id, state, nodes = 0, label_id = 0)
        @thread_id = thread_id
        @state = state
        @label_id = label_id
        # There may be thousands of label sets, so these get no Array.
        @slots = nodes < DENSE_NODES && label_id.zero? ? [] : {}
        @node_ids = []
        @cells = []
      end

      # @return [Integer] stacks
      #: () -> Integer
      def size = @node_ids.size

      # @yield [node_id, wall, cpu, captures]
      #: () { (Integer, Integer, Integer, Integer) -> void } -> void
      def each
        at = 0
        @node_ids.each do |node|
          yield node, @cells[at], @cells[at + 1], @cells[at + 2]
          at += WIDTH
        end
      end

      # Adds one row. Rows#add_to does the same for many.
      #: (Integer, Integer, Integer, Integer) -> void
      def add(node, wall, cpu, captures)
        at = @slots[node]
        unless at
          at = @slots[node] = @cells.size
          @node_ids << node
          @cells.push(0, 0, 0)
        end
        @cells[at] += wall
        @cells[at + 1] += cpu
        @cells[at + 2] += captures
      end
    end
  end
end
