# frozen_string_literal: true

require_relative "plain_data"

module Pitwall
  module Fastboot
    # What a YAML or JSON file was parsed to, as bytes. The options of the call say whether it is frozen.
    # @api private
    module ParsedData
      class << self
        # @return [String, nil] nil: it is not plain
        #: (untyped, Module, Hash[Symbol, untyped]?) -> String?
        def dump(value, _library, keywords)
          fallback = keywords && keywords[:fallback]
          return if !fallback.nil? && value.equal?(fallback) # the caller's own object

          PlainData.dump(value, frozen: keywords && keywords[:freeze] ? true : false)
        end

        #: (String, Module, Hash[Symbol, untyped]?) -> untyped
        def load(bytes, _library, keywords) = Native.plain_data(bytes, keywords && keywords[:freeze])
      end
    end
  end
end
