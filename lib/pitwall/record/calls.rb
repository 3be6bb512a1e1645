# frozen_string_literal: true

module Pitwall
  module Record
    # Exact calls, by thread and node of the call tree. Rows are cumulative: the last one of a thread and node counts.
    class Calls
      # All but the ids are sums: wall (without wait), wait and CPU in ns with the probe's own cost in them, which `probe` estimates;
      # objects; bytes of their slots. The node's own, without what it called.
      Row = Struct.new(:thread_id, :node_id, :calls, :wall, :wait, :cpu, :probe, :objects, :bytes)
      COLUMNS = Row.members.map { |name| name.to_s.tr("_", " ") }.freeze
      private_constant :COLUMNS

      include Enumerable

      def initialize
        @rows = {}
      end

      #: () -> Integer
      def size = @rows.size

      #: () -> bool
      def empty? = @rows.empty?

      # @yield [Row]
      #: () { (Row) -> void } -> void
      def each(&block) = @rows.each_value(&block)

      # @raise [Malformed]
      # @api private
      #: (Columns, untyped) -> void
      def read(columns, budget)
        count = columns.int
        values = COLUMNS.map { |name| columns.column(count, name) }
        before = @rows.size
        count.times do |at|
          row = Row.new(*values.map { |column| column[at] })
          @rows[row.thread_id << 32 | row.node_id] = row
        end
        budget.take(:weights, @rows.size - before)
      end

      # Once all nodes are read; those of a flush stand behind its calls, and a killed process may have written the calls only:
      # such rows are put at the root. Answers how many.
      # @api private
      #: (Integer) -> Integer
      def settle(nodes) = @rows.each_value.select { |row| row.node_id >= nodes }.each { |row| row.node_id = 0 }.size
    end
  end
end
