# frozen_string_literal: true

require "pitwall/record/messages"
require "pitwall/record/messages/pprof_descriptor"

module Pitwall
  module Record
    module Messages
      # pprof's format: Profile and what it consists of.
      # @api private
      module Pprof
        Messages.define(self, PPROF_DESCRIPTOR)
      end
    end
  end
end
