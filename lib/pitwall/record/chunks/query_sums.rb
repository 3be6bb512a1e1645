# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # All executions of a query under a label set.
    #
    # query_id: 0 for queries that no number was left for
    # works:    how many requests or jobs sent the query; 0 outside of any
    # most:     the most executions in one of them
    QuerySum = Struct.new(:label_id, :query_id, :works, :count, :ns, :most)

    module Chunks
      # QSUM: sums by label set and query. Rows are cumulative: the last row of a set and query counts.
      class QuerySums < Chunk
        type "QSUM"
        # @return [Array<QuerySum>] executions of queries, by label set and query
        offers :query_sums

        def initialize(...)
          super
          @sums = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, QuerySum)
          sets, queries = values
          table(Labels).check(sets)
          keep_last(@sums, sets.zip(queries), :queries) { |at| build(QuerySum, values, at) }
        end

        def parts = { query_sums: @sums.values }
      end
    end
  end
end
