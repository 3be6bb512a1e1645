# frozen_string_literal: true

module Pitwall
  module Record
    # What a chunk got wrong, before it is known whether that ends the reading (BadRecording) or is skipped (salvage).
    # @api private
    class Malformed < StandardError; end
    private_constant :Malformed
  end
end
