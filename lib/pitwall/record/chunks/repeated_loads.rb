# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A require that found its file loaded already.
    #
    # around:     id of the load around it, 0: none
    # kind, name: as in Load: how the program asked, and for what
    # from, line: the line of Ruby code that asked for it
    RepeatedLoad = Struct.new(:around, :kind, :name, :from, :line)

    module Chunks
      # AGIN: requires of files that had been loaded. Equal ones have one row, or a few.
      class RepeatedLoads < Chunk
        type "AGIN"
        limit :repeated_loads, 2_000_000
        # @return [Array<RepeatedLoad>] in the order of the file; empty in older recordings
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

        def settle(_payload_at)
          strings = table(Strings)
          @repeated_loads.each do |row|
            %i[kind name from].each { |name| row[name] = strings.known(row[name]) }
          end
        end
      end
    end
  end
end
