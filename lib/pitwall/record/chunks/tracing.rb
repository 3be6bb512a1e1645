# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/header"

module Pitwall
  module Record
    module Chunks
      # TRAC: how calls were traced. The last chunk counts.
      class Tracing < Chunk
        type "TRAC"
        # @return [Hash{String => Object}] settings and results (TRAC of doc/record-format.md); empty where calls were
        #   not traced
        offers :tracing

        def initialize(...)
          super
          @tracing = {}
        end

        #: (String, Integer) -> void
        def read(payload, _offset)
          @tracing = Header.parse_object(payload)
        end
      end
    end

    class Segment
      # Were calls traced?
      #: () -> bool
      def traced? = !tracing.empty?
    end
  end
end
