# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # Strings of equal content from one site. group: a number that equal contents share · length: bytes of one content ·
    # bytes: of all these strings with their slots.
    EqualStrings = Struct.new(:group, :site, :length, :count, :bytes)

    module Chunks
      # DUPS: strings of equal content.
      class EqualStringGroups < Chunk
        type "DUPS"
        # @return [Array<EqualStrings>] the most bytes first; empty where contents were not compared
        offers :equal_strings
        # @return [Integer, nil] strings that could not be compared; nil where contents were not compared
        offers :uncompared_strings

        def initialize(...)
          super
          @equal_strings = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          uncompared = columns.int
          values = columns_of(columns, EqualStrings)
          take(:sites, values.first.size)
          @uncompared_strings = uncompared
          @equal_strings.concat(build_all(EqualStrings, values))
        end
      end
    end
  end
end
