# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A query to a database.
    #
    # node_id: the application's line that sent the query; 0 where there is none
    # digest:  a number that query texts share which differ in literals only
    # kind:    0 sent to the database, 1 answered by a cache, 2 of the schema
    Query = Struct.new(:id, :node_id, :digest, :kind) do
      # Was the query sent to the database?
      #: () -> bool
      def asked? = kind.zero?
    end

    module Chunks
      # QURY: queries. Their nodes may come in a later chunk.
      class Queries < Chunk
        type "QURY"
        # Queries, their sums (QSUM) and their parts of work (QREQ).
        limit :queries, 4_000_000
        # @return [Hash{Integer => Query}] queries to databases, by number
        offers :queries

        def initialize(...)
          super
          @queries = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, Query)
          keep_last(@queries, values.first, :queries) { |at| build(Query, values, at) }
        end

        # A query whose node was lost has no line.
        def settle(_payload_at)
          lost = @queries.each_value.select { |query| query.node_id >= table(Nodes).size }
          lost.each { |query| query.node_id = 0 }
          lose(lost.size)
        end
      end
    end
  end
end
