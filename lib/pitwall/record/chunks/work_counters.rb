# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A counter of the VM's caches over all work that ended under a label set.
    #
    # name:     "constant_cache_misses"
    # counted:  pieces of work without other work beside them; only these have counts, because the counter is the
    #           process's
    # increase: of these pieces
    WorkCounter = Struct.new(:label_id, :name, :counted, :increase)

    module Chunks
      # CWRK: sums by label set and counter. Rows are cumulative: the last row of a set and counter counts.
      class WorkCounters < Chunk
        type "CWRK"
        limit :work_counters, 1_600_000 # eight counters for each of the most label sets
        # @return [Array<WorkCounter>] counters of the VM's caches, by label set
        offers :work_counters

        def initialize(...)
          super
          @sums = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, WorkCounter)
          sets, names = values
          table(Labels).check(sets)
          keep_last(@sums, sets.zip(names), :work_counters) { |at| build(WorkCounter, values, at) }
        end

        # Strings may come in a later chunk.
        def settle(_payload_at)
          strings = table(Strings)
          @sums.each_value { |sum| sum.name = strings.known(sum.name) }
        end

        def parts = { work_counters: @sums.values }
      end
    end
  end
end
