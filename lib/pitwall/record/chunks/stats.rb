# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/header"

module Pitwall
  module Record
    module Chunks
      # STAT: cumulative counters of the recording itself. The last chunk counts.
      class Stats < Chunk
        type "STAT"
        # @return [Hash{String => Object}] the last STAT, with what ROOM says
        offers :stats

        def initialize(...)
          super
          @stats = {}
        end

        #: (String, Integer) -> void
        def read(payload, _offset)
          @stats = Header.parse_object(payload)
        end

        def parts = { stats: @stats.merge(table(Room).failure) }
      end
    end

    class Segment
      # A counter of STAT; 0 where it was not written.
      #: (String) -> Integer
      def stat(name)
        value = stats[name]
        value.is_a?(Integer) ? value : 0
      end
    end
  end
end
