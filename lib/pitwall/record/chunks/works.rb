# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # All work that ended under a label set.
    Work = Struct.new(:label_id, :count, :total_ns)

    # The part of a Work that ended between two flushes. at_ns: when the last marked work ended, since the segment's
    # start.
    WorkStep = Struct.new(:label_id, :at_ns, :count, :total_ns)

    module Chunks
      # WORK: sums of all work by label set. Rows are cumulative: the last row of a set counts.
      class Works < Chunk
        type "WORK"
        # @return [Array<Work>] all work that ended, by label set
        offers :works
        # @return [Array<WorkStep>] the same by flush, in the order of time
        offers :work_steps

        def initialize(...)
          super
          @by_set = {}
          @work_steps = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          before = @by_set.dup
          sets, counts, sums = columns_of(columns, Work)
          table(Labels).check(sets)
          keep_last(@by_set, sets, :labels) { |at| Work.new(sets[at], counts[at], sums[at]) }
          sets.uniq.each { |set| add_step(before[set], @by_set[set]) }
        end

        def parts = super.merge(works: @by_set.values)

        private

        # The marks of a flush stand before its sums.
        def add_step(last, now)
          count, total_ns = now.count - last&.count.to_i, now.total_ns - last&.total_ns.to_i
          return unless count.positive? && total_ns >= 0 && @work_steps.size < Marks::LIMIT

          @work_steps << WorkStep.new(now.label_id, table(Marks).until_ns, count, total_ns)
        end
      end
    end
  end
end
