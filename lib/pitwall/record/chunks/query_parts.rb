# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # Executions of a query in one request or job: the work of the Mark with the same thread and end.
    QueryPart = Struct.new(:thread_id, :end_ns, :query_id, :count, :ns)

    module Chunks
      # QREQ: the queries of marked work. The chunk follows the MARK chunk with the work.
      class QueryParts < Chunk
        type "QREQ"
        # @return [Hash{[Integer, Integer] => Array<QueryPart>}] by thread and end of the mark
        offers :query_parts

        def initialize(...)
          super
          @query_parts = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, QueryPart)
          take(:queries, values.first.size)
          build_all(QueryPart, values).each { |part| (@query_parts[[part.thread_id, part.end_ns]] ||= []) << part }
        end
      end
    end
  end
end
