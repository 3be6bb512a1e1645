# frozen_string_literal: true

module Pitwall
  module Record
    # Something is wrong with a chunk. The reader makes it a BadRecording, or skips the chunk when it salvages.
    # @api private
    class Malformed < StandardError; end
    private_constant :Malformed
  end
end
