# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A thread as the recording names it; start_ns counts from the segment's start.
    ThreadInfo = Struct.new(:id, :native_id, :start_ns, :name) do
      # The thread's name in reports and options: "worker", or "thread 11" where it has no name.
      #: () -> String
      def title = name.empty? ? "thread #{id}" : name
    end

    module Chunks
      # THRD: threads. A later row of an id replaces the earlier one.
      class Threads < Chunk
        # Threads, and Tally objects: one for each thread, state and label set.
        LIMIT = 1_000_000

        type "THRD"
        limit :threads, LIMIT
        # @return [Hash{Integer => ThreadInfo}] by id
        offers :threads

        def initialize(...)
          super
          @threads = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          count = columns.int
          ids, natives, starts, names = ["id", "native id", "start", "name"].map { |name| columns.column(count, name) }
          strings = table(Strings)
          strings.check(names.max) if count.positive?
          take(:threads, count)
          count.times do |at|
            @threads[ids[at]] = ThreadInfo.new(ids[at], natives[at], starts[at], strings.fetch(names[at]))
          end
        end
      end
    end

    class Segment
      # The thread of an id; one without a name where the recording does not name it.
      #: (Integer) -> ThreadInfo
      def thread(id) = threads[id] || ThreadInfo.new(id, 0, 0, "")
    end
  end
end
