# frozen_string_literal: true

require "pitwall/application"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Finds methods by a name that the user types.
    module MethodMatch
      # A saved set of names. title: as one asks for it, e.g. "@framework" · names: e.g. ["rails", "rack"]
      Set = Struct.new(:title, :names) do
        #: () -> String
        def to_s = title
      end

      # Numbers of the methods that a name means. Tries five rules in order. The first that matches anything wins:
      # 1. the whole name: `Shop::Cart#sum`
      # 2. the end of a name after a separator: `Cart#sum`, `#sum`, `sum`
      # 3. a part of the path, if the name has a slash: `gems/activerecord`
      # 4. a gem's name: `activerecord` is each method of that gem
      # 5. any part of a name
      # Of a set, each name that matches counts.
      # @param sought [String] noun for the error message
      # @raise [UsageError] when nothing matches; the message has similar names
      #: (Array[MethodInfo], String | Set, ?sought: String) -> Array[Integer]
      def self.find(methods, name, sought: "method")
        return of_set(methods, name) if name.is_a?(Set)
        raise UsageError, "an empty name fits no method" if name.empty?

        found = search(methods, name)
        return found unless found.empty?

        near = hint(methods, name)
        raise UsageError, "no #{sought} #{name.inspect} in the recording#{near.empty? ? LISTED : near}"
      end

      # The same, where a name may match nothing.
      #: (Array[MethodInfo], String) -> Array[Integer]
      def self.search(methods, name)
        tests = [
          ->(method) { method.name == name },
          ->(method) { ends_with?(method.name, name) },
          ->(method) { name.include?("/") && method.path.include?(name) },
          ->(method) { method.path.include?(name) && Application.gem(method.path) == name },
          ->(method) { method.name.include?(name) }
        ]
        tests.each do |test|
          found = (1...methods.size).select { |number| test.call(methods[number]) }
          return found unless found.empty?
        end
        []
      end

      # A saved set is for many recordings, so not all of its names need to be in one.
      def self.of_set(methods, set)
        found = set.names.flat_map { |name| search(methods, name) }.uniq
        raise UsageError, "no method of the set #{set} in the recording; it is #{set.names.join(", ")}" if found.empty?

        found
      end
      private_class_method :of_set

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
