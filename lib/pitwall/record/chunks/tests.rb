# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # All runs of a test: those that ended under a label set. cpu_ns is the CPU time of the test's own thread. objects
    # and gc_ns count the whole process, so they cover only the `counted` runs: those with no other test beside them.
    Test = Struct.new(:label_id, :count, :total_ns, :cpu_ns, :counted, :objects, :gc_ns)

    module Chunks
      # TEST: sums by test. Rows are cumulative: the last row of a label set counts.
      class Tests < Chunk
        type "TEST"
        # @return [Array<Test>] what tests took, by label set
        offers :tests

        def initialize(...)
          super
          @by_set = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, Test)
          sets = values.first
          table(Labels).check(sets)
          keep_last(@by_set, sets, :labels) { |at| build(Test, values, at) }
        end

        def parts = { tests: @by_set.values }
      end
    end
  end
end
