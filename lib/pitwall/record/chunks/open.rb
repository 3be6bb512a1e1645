# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    module Chunks
      # OPEN: what threads had spent since their last row when the process last wrote. Only the last OPEN chunk of a
      # segment counts. Its rows are added to those of SAMP.
      class Open < Chunk
        type "OPEN"
        # @return [Array<[thread_id, state, node_id, wall, cpu, label_id]>] wall and cpu in unit_ns
        offers :open_rows

        def initialize(...)
          super
          @open_rows = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          count = columns.int
          threads, states, nodes, wall, cpu =
            %w[thread state node wall cpu].map { |name| columns.column(count, name) }
          labels = columns.more? ? columns.column(count, "label") : Array.new(count, 0)
          check(threads, states, nodes, labels) if count.positive?
          nodes.map! { |node| table(Nodes).known(node) }
          @open_rows = threads.zip(states, nodes, wall, cpu, labels)
        end

        # @raise [Malformed] when there are too many threads; salvage drops their rows
        def settle(_payload_at)
          samples = table(Samples)
          @open_rows.each do |thread, state, node, wall, cpu, label|
            samples.tally(thread, state, label).add(node, wall, cpu, 0)
          rescue Malformed
            raise unless salvage?

            lose
          end
        end

        private

        def check(threads, states, nodes, labels)
          table(Labels).check(labels)
          table(Samples).check_state(states.max)
          raise Malformed, "has more threads than the limit" if threads.uniq.size > Threads::LIMIT

          table(Nodes).check(nodes.max)
        end
      end
    end
  end
end
