# frozen_string_literal: true

module Pitwall
  module Record
    # A query to a database as the recording knows it: the node is the application's line that asked (0: none); digest: a number for what its
    # text is like without literals; kind: 0 asked, 1 answered by a cache, 2 of the schema.
    Query = Struct.new(:id, :node_id, :digest, :kind) do
      #: () -> bool
      def asked? = kind.zero?
    end

    # All of a query that was asked under a set of labels. works: pieces of work that it was asked in, 0 where there was none;
    # most: how often one of them did. query_id 0: those that no number was left for.
    QuerySum = Struct.new(:label_id, :query_id, :works, :count, :ns, :most)

    # A query's part of one piece of work, the Mark of that thread and end.
    QueryPart = Struct.new(:thread_id, :end_ns, :query_id, :count, :ns)
  end
end
