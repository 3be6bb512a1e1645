# frozen_string_literal: true

require "pitwall/record/messages"
require "pitwall/record/messages/otlp_descriptor"

module Pitwall
  module Record
    module Messages
      # OTLP's profiles, v1development of opentelemetry-proto v1.11.0: ProfilesData and what it consists of.
      # @api private
      module Otlp
        Messages.define(self, OTLP_DESCRIPTOR)
      end
    end
  end
end
