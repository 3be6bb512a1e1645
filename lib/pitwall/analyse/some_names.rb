# frozen_string_literal: true

module Pitwall
  module Analyse
    # The first few of a list of names, for people.
    module SomeNames
      # "a, b and 3 more"
      # @param most how many are named
      #: (Array[String], Integer) -> String
      def self.of(names, most)
        more = names.size - most
        "#{names.first(most).join(", ")}#{" and #{more} more" if more.positive?}"
      end
    end
  end
end
