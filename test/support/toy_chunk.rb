# frozen_string_literal: true

require "pitwall/record/chunks"

# A chunk type as a newcomer would add it: this file is all there is of TOYS.
module Pitwall
  module Record
    # A toy: what it is called and what it costs.
    Toy = Struct.new(:name, :price)

    module Chunks
      # TOYS: int n, columns: name (string id, may come in a later chunk), price.
      class Toys < Chunk
        Row = Struct.new(:name, :price)
        private_constant :Row

        type "TOYS"
        limit :toys, 3
        # @return [Array<Toy>] in the order of the file
        offers :toys

        def initialize(...)
          super
          @rows = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, Row)
          raise Malformed, "has a toy for nothing" if values.last.include?(0)

          take(:toys, values.first.size)
          @rows.concat(build_all(Row, values))
        end

        def settle(_payload_at)
          strings = table(Strings)
          lose(@rows.count { |row| row.name >= strings.size })
          @toys = @rows.map { |row| Toy.new(strings.known(row.name), row.price) }
        end

        #: () -> Array[[Symbol, String]]
        def warnings = @toys.size == 3 ? [[:toys, "all toys are taken"]] : []
      end

      register Toys
    end

    class Segment
      #: () -> Integer
      def price_of_toys = toys.sum(&:price)
    end
  end
end
