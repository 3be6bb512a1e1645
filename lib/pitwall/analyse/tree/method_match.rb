# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module Analyse
    # Finds methods by what a person types.
    module MethodMatch
      # Numbers of the methods that NAME means, by the first of these that finds any: the whole name (`Shop::Cart#sum`);
      # the end of one after a separator (`Cart#sum`, `#sum`, `sum`); a path (`gems/activerecord`, when it has a slash); a
      # part of a name.
      # @param sought [String] what there is none of, in the error
      # @raise [UsageError] with the nearest names when nothing fits
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

      # "block in Cart#sum" is not what is meant by "Cart#sum".
      def self.ends_with?(full, name)
        return false unless full.end_with?(name) && !full[0, full.size - name.size].include?(" ")

        SEPARATORS.include?(full[-name.size - 1]) || SEPARATORS.include?(name[0])
      end
      private_class_method :ends_with?

      # "; did you mean …?" or nothing. did_you_mean compares every pair of letters: keep both sides short.
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
