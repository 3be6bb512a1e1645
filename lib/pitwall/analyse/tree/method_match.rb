# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module Analyse
    # Finds methods by a name that the user types.
    module MethodMatch
      # Numbers of the methods that a name means. Tries four rules in order. The first that matches anything wins:
      # 1. the whole name: `Shop::Cart#sum`
      # 2. the end of a name after a separator: `Cart#sum`, `#sum`, `sum`
      # 3. a part of the path, if the name has a slash: `gems/activerecord`
      # 4. any part of a name
      # @param sought [String] noun for the error message
      # @raise [UsageError] when nothing matches; the message has similar names
      #: (Array[MethodInfo], String, ?sought: String) -> Array[Integer]
      def self.find(methods, name, sought: "method")
        raise UsageError, "an empty name fits no method" if name.empty?

        tests = [
          ->(method) { method.name == name },
          ->(method) { ends_with?(method.name, name) },
          ->(method) { name.include?("/") && method.path.include?(name) },
          ->(method) { method.name.include?(name) }
        ]
        tests.each do |test|
          found = (1...methods.size).select { |number| test.call(methods[number]) }
          return found unless found.empty?
        end
        near = hint(methods, name)
        raise UsageError, "no #{sought} #{name.inspect} in the recording#{near.empty? ? LISTED : near}"
      end

      SEPARATORS = ["#", ".", ":"].freeze
      LISTED = "; pitwall report FILE --limit 100 lists what it has"
      private_constant :SEPARATORS, :LISTED

      # "Cart#sum" does not match "block in Cart#sum".
      def self.ends_with?(full, name)
        return false unless full.end_with?(name) && !full[0, full.size - name.size].include?(" ")

        SEPARATORS.include?(full[-name.size - 1]) || SEPARATORS.include?(name[0])
      end
      private_class_method :ends_with?

      # "; did you mean …?" or "". did_you_mean compares every pair of letters, so long names are skipped.
      #: (Array[untyped], String) -> String
      def self.hint(methods, name)
        return "" unless defined?(DidYouMean::SpellChecker) && name.size <= 100

        names = methods.map(&:name).select { |known| known.size <= 100 }.first(5000).uniq
        near = DidYouMean::SpellChecker.new(dictionary: names).correct(name).first(2)
        near.empty? ? "" : "; did you mean #{near.join(" or ")}?"
      end
    end
  end
end
