# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module CLI
    # How many objects are followed, as people type it.
    module OneIn
      module_function

      # "1/100" → 100
      # @param name [String] the option's
      # @raise [UsageError] it is no such fraction
      #: (String, name: String) -> Integer
      def parse(text, name:)
        n = text[%r{\A1/([\d_]+)\z}, 1]&.delete("_").to_i
        n.between?(1, 1_000_000_000) ? n : raise(UsageError, "#{name} #{text}: write 1/N, such as 1/100")
      end
    end
    private_constant :OneIn
  end
end
