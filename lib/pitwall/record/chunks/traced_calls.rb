# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # Exact calls, by thread and node of the call tree.
    class Calls
      # Figures of a thread's calls of a node, without the calls made from there.
      #
      # calls: how many
      # wall, wait, cpu: in ns, with the cost of Pitwall's probe; wall without wait
      # probe: an estimate of that cost, in ns
      # objects: allocated
      # bytes: of the objects' slots
      Row = Struct.new(:thread_id, :node_id, :calls, :wall, :wait, :cpu, :probe, :objects, :bytes)

      include Enumerable

      # @param rows [Hash{Object => Row}] by any key
      #: (?Hash[untyped, Row]) -> void
      def initialize(rows = {})
        @rows = rows
      end

      #: () -> Integer
      def size = @rows.size

      #: () -> bool
      def empty? = @rows.empty?

      # @yield [Row]
      #: () { (Row) -> void } -> void
      def each(&block) = @rows.each_value(&block)
    end

    module Chunks
      # CALL: what `pitwall trace` counted. Rows are cumulative: the last row of a thread and node counts.
      class TracedCalls < Chunk
        type "CALL"
        # @return [Calls] exact calls; empty where calls were not traced
        offers :calls

        def initialize(...)
          super
          @rows = {}
          @calls = Calls.new(@rows)
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, Calls::Row)
          threads, nodes = values
          keys = Array.new(threads.size) { |at| threads[at] << 32 | nodes[at] }
          keep_last(@rows, keys, :weights) { |at| build(Calls::Row, values, at) }
        end

        # A flush writes calls before their nodes, and a process may be killed in between. Calls of a lost node are put
        # at the root.
        def settle(_payload_at)
          nodes = table(Nodes).size
          lost = @rows.each_value.select { |row| row.node_id >= nodes }
          lost.each { |row| row.node_id = 0 }
          lose(lost.size)
        end
      end
    end
  end
end
