# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    module Chunks
      # ROOM: twelve bytes kept free near the start of the segment. When a write fails, the process overwrites them with
      # the error number and how long the recording would have been. They are zero where nothing failed.
      class Room < Chunk
        BYTES = 12
        private_constant :BYTES

        type "ROOM"
        # @return [Hash{String => Integer}] the failure in the words of STAT; empty where nothing failed
        attr_reader :failure

        def initialize(...)
          super
          @failure = {}
        end

        #: (String, Integer) -> void
        def read(payload, _offset)
          raise Malformed, "has #{payload.bytesize} bytes and no #{BYTES}" if payload.bytesize < BYTES

          error, elapsed_ns = payload.unpack("VQ<")
          @failure = error.positive? ? { "write_error" => error, "unwritten_until_ns" => elapsed_ns } : {}
        end
      end
    end
  end
end
