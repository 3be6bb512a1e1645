# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A require that found its file loaded already.
    #
    # around:     id of the load around it; 0: none
    # kind:       how the program asked: "require", …
    # name:       what the program asked for: "json"
    # from, line: the line of Ruby code that asked
    RepeatedLoad = Struct.new(:around, :kind, :name, :from, :line)

    module Chunks
      # AGIN: requires of files that had been loaded. Equal requires usually share one row.
      class RepeatedLoads < Chunk
        type "AGIN"
        limit :repeated_loads, 2_000_000
        # @return [Array<RepeatedLoad>] in the order of the recording; older recordings have none
        offers :repeated_loads

        def initialize(...)
          super
          @repeated_loads = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, RepeatedLoad)
          take(:repeated_loads, values.first.size)
          @repeated_loads.concat(build_all(RepeatedLoad, values))
        end

        def settle(_payload_at) = name_strings(@repeated_loads, :kind, :name, :from)
      end
    end
  end
end
