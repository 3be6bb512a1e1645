# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A unit of work, such as a request or a job, that ended: its thread, its label set, when the work ended (ns since
    # the segment's start) and how long it took.
    Mark = Struct.new(:thread_id, :label_id, :end_ns, :duration_ns) do
      #: () -> Integer
      def start_ns = end_ns - duration_ns
    end

    module Chunks
      # MARK: work that ended, one row each. A flush writes the slowest ones only; WORK counts all.
      class Marks < Chunk
        # Also how many steps Works keeps.
        LIMIT = 2_000_000

        type "MARK"
        limit :marks, LIMIT
        # @return [Array<Mark>] work that ended: the slowest of each flush
        offers :marks
        # @return [Integer] when the last work ended that was read so far, in ns since the segment's start
        attr_reader :until_ns

        def initialize(...)
          super
          @marks = []
          @until_ns = 0
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, Mark)
          _, labels, ends = values
          table(Labels).check(labels)
          take(:marks, labels.size)
          @marks.concat(build_all(Mark, values))
          @until_ns = [@until_ns, *ends.max].max
        end
      end
    end
  end
end
