# frozen_string_literal: true

require "shellwords"
require "pitwall/errors"

module Pitwall
  module CLI
    # An option's value that is several words, quoted as in a shell: "ruby3.4 --yjit".
    module Words
      module_function

      # Raises UsageError when there is none, or a quote isn't closed; `option` is its name.
      #: (String, option: String) -> Array[String]
      def parse(text, option:)
        words = Shellwords.split(text)
        words.empty? ? raise(UsageError, "#{option} needs a value") : words
      rescue ArgumentError
        raise UsageError, "#{option} #{text}: a quote in it isn't closed"
      end
    end
  end
end
