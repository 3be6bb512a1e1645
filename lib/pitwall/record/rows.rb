# frozen_string_literal: true

require "pitwall/record/columns"

module Pitwall
  module Record
    # One `SAMP` chunk, decoded: parallel columns of `size` rows in time order for each thread.
    class Rows
      # @return [Array<Integer>] node ids; wall and cpu in the segment's unit_ns
      attr_reader :nodes, :wall, :cpu
      # @return [Array<Integer>] thread ids, states, captures and label sets as pairs: a value, how many rows have it
      attr_reader :thread_runs, :state_runs, :capture_runs, :label_runs

      #: (String) -> void
      def initialize(payload)
        columns = Columns.new(payload)
        @size = columns.int
        @thread_runs = columns.runs(@size, "thread")
        @state_runs = columns.runs(@size, "state")
        @nodes = columns.column(@size, "node")
        @wall = columns.column(@size, "wall")
        @cpu = columns.column(@size, "cpu")
        @capture_runs = columns.runs(@size, "captures")
        @label_runs = columns.more? ? columns.runs(@size, "label") : [0, @size]
      end

      #: () -> Integer
      attr_reader :size

      # 0 for no rows.
      #: () -> Integer
      def highest_state = @state_runs.each_slice(2).map(&:first).max || 0

      # Numbers of label sets, each once or more.
      # @api private
      #: () -> Array[Integer]
      def label_ids = @label_runs.each_slice(2).map(&:first)

      # Puts rows at the root whose stack is not among the first `known` nodes; answers how many.
      # @api private
      #: (Integer) -> Integer
      def root_unknown(known)
        return 0 if @size.zero? || @nodes.max < known

        @nodes.map! { |node| node < known ? node : 0 }.count(0)
      end

      # The same rows with other nodes.
      # @param targets [Array<Integer>] by node
      #: (Array[Integer]) -> Rows
      def moved(targets)
        nodes = @nodes.map { |node| targets[node] }
        dup.tap { |copy| copy.instance_variable_set(:@nodes, nodes) }
      end

      # @yield [thread_id, state, node_id, wall, cpu, captures, label_id] row by row
      #: () { (Integer, Integer, Integer, Integer, Integer, Integer, Integer) -> void } -> void
      def each
        threads = spread(@thread_runs)
        states = spread(@state_runs)
        captures = spread(@capture_runs)
        labels = spread(@label_runs)
        @size.times { |at| yield threads[at], states[at], @nodes[at], @wall[at], @cpu[at], captures[at], labels[at] }
      end

      # Adds all rows to tallies. The inner loop of every report, which a million rows pass: hence `while`, local
      # variables, and no call a row.
      # @param labelled [Hash{Integer => Hash{Integer => Tally}}] by label_id, then by thread_id << 8 | state; makes a missing inner one itself
      # @yield [thread_id, state, label_id] makes a missing tally
      # @api private
      def add_to(labelled)
        nodes = @nodes
        wall = @wall
        cpu = @cpu
        threads = @thread_runs
        states = @state_runs
        captures = @capture_runs
        labels = @label_runs
        thread_at = state_at = capture_at = label_at = -2
        thread_left = state_left = capture_left = label_left = 0
        tallies = nil
        at = 0
        while at < @size
          thread_left = threads[(thread_at += 2) + 1] if thread_left == 0
          state_left = states[(state_at += 2) + 1] if state_left == 0
          capture_left = captures[(capture_at += 2) + 1] if capture_left == 0
          if label_left == 0
            label_left = labels[(label_at += 2) + 1]
            tallies = labelled[labels[label_at]]
          end
          span = thread_left
          span = state_left if state_left < span
          span = capture_left if capture_left < span
          span = label_left if label_left < span
          label_left -= span
          thread_left -= span
          state_left -= span
          capture_left -= span
          capture = captures[capture_at]
          tally = tallies[threads[thread_at] << 8 | states[state_at]] || yield(threads[thread_at], states[state_at], labels[label_at])
          slots = tally.slots
          cells = tally.cells
          span += at
          while at < span
            if (cell = slots[nodes[at]])
              cells[cell] += wall[at]
              cells[cell + 1] += cpu[at]
              cells[cell + 2] += capture
            else
              tally.add(nodes[at], wall[at], cpu[at], capture)
            end
            at += 1
          end
        end
      end

      private

      def spread(runs) = runs.each_slice(2).flat_map { |value, count| Array.new(count, value) }
    end
  end
end
