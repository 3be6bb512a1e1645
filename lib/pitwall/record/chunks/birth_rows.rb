# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # Of a site's objects that lived at a LivingPoint, those that were born before the point of this number and not
    # before the previous point. bytes: slots and malloc'ed memory, estimated from the site's mean.
    Births = Struct.new(:site, :point, :count, :bytes)

    module Chunks
      # BORN: when the objects of a LivingPoint were born. The chunk follows the LIVE chunk of its number.
      class BirthRows < Chunk
        type "BORN"

        #: (Columns) -> void
        def read_columns(columns)
          number = columns.int
          values = columns_of(columns, Births)
          take(:living, values.first.size)
          point = table(LivingPoints).point(number)
          raise Malformed, "has births of point #{number}, which is not there" unless point || salvage?

          point.births = build_all(Births, values) if point
        end
      end
    end
  end
end
