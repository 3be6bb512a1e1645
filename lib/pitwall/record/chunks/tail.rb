# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/header"

module Pitwall
  module Record
    module Chunks
      # TAIL: how the recording was stopped.
      class Tail < Chunk
        type "TAIL"
        # @return [Hash{String => Object}, nil] e.g. {"reason" => "stop"}; nil when the process ended without stopping
        offers :tail

        #: (String, Integer) -> void
        def read(payload, _offset)
          @tail = Header.parse_object(payload)
        end
      end
    end
  end
end
