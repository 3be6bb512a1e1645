# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/tally"

module Pitwall
  module Record
    # The rows of one SAMP chunk, as parallel columns. The rows of a thread are in the order of time.
    class Rows
      # @return [Array<Integer>] node ids; wall and cpu in the segment's unit_ns
      attr_reader :nodes, :wall, :cpu
      # @return [Array<Integer>] thread ids, states, captures and label sets as pairs: a value, number of rows with it
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

      # Rows that are not of a file.
      # @param list [Array<[thread_id, state, node_id, wall, cpu, captures, label_id]>]
      #: (Array[Array[Integer]]) -> Rows
      def self.of(list) = allocate.tap { |rows| rows.fill(list) }

      #: () -> Integer
      attr_reader :size

      # The highest state of the rows; 0 for no rows.
      #: () -> Integer
      def highest_state = @state_runs.each_slice(2).map(&:first).max || 0

      # Numbers of label sets. A number may occur several times.
      # @api private
      #: () -> Array[Integer]
      def label_ids = @label_runs.each_slice(2).map(&:first)

      # Sets the node of each row to 0, the root, if the node is not smaller than `known`.
      # @return [Integer] rows whose node was set
      # @api private
      #: (Integer) -> Integer
      def root_unknown(known)
        return 0 if @size.zero? || @nodes.max < known

        lost = @nodes.count { |node| node >= known }
        @nodes.map! { |node| node < known ? node : 0 }
        lost
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

      # Runs of rows of one thread under one label set.
      # @yield [thread_id, label_id, range] range: positions in the columns
      #: () { (Integer, Integer, Range[Integer]) -> void } -> void
      def each_run
        labels = @label_runs.each_slice(2)
        label, left = nil, 0
        at = 0
        @thread_runs.each_slice(2) do |thread, count|
          while count.positive?
            label, left = labels.next if left.zero?
            span = [count, left].min
            yield thread, label, at...(at + span)
            at += span
            left -= span
            count -= span
          end
        end
      end

      # @api private
      def fill(list)
        @size = list.size
        threads, states, @nodes, @wall, @cpu, captures, labels = list.empty? ? Array.new(7) { [] } : list.transpose
        @thread_runs, @state_runs, @capture_runs, @label_runs = [threads, states, captures, labels].map do |values|
          values.chunk_while { |one, other| one == other }.flat_map { |run| [run.first, run.size] }
        end
      end

      # Adds all rows to tallies. Every report runs this loop, often for a million rows. Therefore it uses `while` and
      # local variables, and calls no method for a row.
      # @param labelled [Hash{Integer => Hash{Integer => Tally}}] by label_id, then by thread_id << 8 | state; makes a
      #   missing inner one itself
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
          tally = tallies[threads[thread_at] << 8 | states[state_at]] ||
                  yield(threads[thread_at], states[state_at], labels[label_at])
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

    module Chunks
      # SAMP: rows of samples. A row says how long a thread spent at a stack since the thread's previous row. The rows
      # are added up in Tally objects here; they stay in the file for who needs the time line.
      class Samples < Chunk
        # The highest number of a thread's state.
        STATE = 255
        # Distinct stacks of all Tally objects, and rows of traced calls.
        LIMIT = 8_000_000
        # Rows after which the distinct stacks are counted again. Counting after every chunk would cost more than the
        # limit protects.
        RECOUNT = LIMIT / 8
        private_constant :RECOUNT

        type "SAMP"
        limit :weights, LIMIT
        # @return [Array<Tally>] every weight of the segment, including rows of OPEN
        offers :tallies
        # @return [Integer] rows of all SAMP chunks
        offers :row_count

        def initialize(...)
          super
          @by_label = Hash.new { |labelled, label| labelled[label] = {} }
          @row_count = 0
          @chunks = []
          @uncounted = 0
          @stacks = 0
        end

        # If a limit is exceeded, the chunk's rows that were already added stay in the tallies.
        #: (String, Integer) -> void
        def read(payload, offset)
          rows = Rows.new(payload)
          return if rows.size.zero?

          check_state(rows.highest_state)
          table(Labels).check(rows.label_ids)
          nodes = table(Nodes)
          nodes.check(rows.nodes.max)
          lost = rows.root_unknown(nodes.size)
          rows.add_to(@by_label) { |thread, state, label| tally(thread, state, label) }
          count_stacks(rows.size)
          lose(lost)
          @chunks << [offset, nodes.size]
          @row_count += rows.size
        end

        # @raise [Malformed]
        #: (Integer) -> void
        def check_state(highest)
          raise Malformed, "has a state above #{STATE}" if highest > STATE
        end

        # The Tally of a thread's state under a label set, made where there is none.
        # @raise [Malformed]
        #: (Integer, Integer, Integer) -> Tally
        def tally(thread, state, label)
          @by_label[label][thread << 8 | state] ||= begin
            take(:threads, 1)
            Tally.new(thread, state, table(Nodes).size, label)
          end
        end

        #: (^(Integer) -> String) -> void
        def settle(payload_at)
          chunks = @chunks
          @row_source = lambda do |&block|
            chunks.each do |offset, known|
              rows = Rows.new(payload_at.call(offset))
              rows.root_unknown(known)
              block.call(rows)
            end
          end
        end

        #: () -> Hash[Symbol, untyped]
        def parts = super.merge(tallies: @by_label.each_value.flat_map(&:values), row_source: @row_source)

        private

        def count_stacks(rows)
          return if (@uncounted += rows) < RECOUNT

          @uncounted = 0
          before = @stacks
          @stacks = @by_label.each_value.sum { |tallies| tallies.each_value.sum(&:size) }
          take(:weights, @stacks - before)
        end
      end
    end

    class Segment
      # Reads the file once more, chunk by chunk, for the time line instead of the sums.
      # @yield [Rows]
      # @raise [BadRecording] when the file was changed since
      #: () { (Rows) -> void } -> void
      def each_rows(&block) = @row_source.call(&block)

      # Whether the recording was asked to take samples, or has some.
      #: () -> bool
      def sampled? = header.mode != "none" || row_count.positive?
    end
  end
end
