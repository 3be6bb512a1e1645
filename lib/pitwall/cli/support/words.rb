# frozen_string_literal: true

require "shellwords"
require "pitwall/errors"

module Pitwall
  module CLI
    # Splits an option's value into words, with a shell's quoting: "ruby3.4 --yjit" → ["ruby3.4", "--yjit"].
    module Words
      module_function

      # The words, at least one.
      # @param option the option's name, for errors
      # Raises UsageError when there is no word, or a quote isn't closed.
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
