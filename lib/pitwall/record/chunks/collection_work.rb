# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    module Chunks
      # GCWK: the work that collections did for the objects of each site. Rows are cumulative: the last row of a site
      # counts.
      class CollectionWork < Chunk
        type "GCWK"
        # @return [Hash{Integer => Array<Integer>}] Site::WORK by the site's id
        attr_reader :by_site

        def initialize(...)
          super
          @by_site = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          count = columns.int
          ids = columns.column(count, "id")
          values = Site::WORK.map { |name| columns.column(count, name.to_s) }
          keep_last(@by_site, ids, :sites) { |at| values.map { |column| column[at] } }
        end
      end
    end
  end
end
