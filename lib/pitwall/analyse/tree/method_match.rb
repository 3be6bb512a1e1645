# frozen_string_literal: true

require "pitwall/analyse/recording/origin"
require "pitwall/analyse/tree/object_match"
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

      # Numbers of the methods that a name means. Tries seven rules in order. The first that matches anything wins:
      # 1. the whole name: `Shop::Cart#sum`
      # 2. a gem's name: `activerecord` is each method of that gem, `rails` of the gems that Rails consists of
      # 3. the end of a name after a separator: `Cart#sum`, `#sum`, `sum`
      # 4. a part of the path, if the name has a slash: `gems/activerecord`
      # 5. a class or module, with what is inside: `Shop::Cart`, `Cart`, `ActiveRecord`
      # 6. a shared object, as ObjectMatch knows it: `libruby.so` is each native function of it
      # 7. any part of a name
      # Of a set, each name that matches counts.
      # @param sought [String] noun for the error message
      # @param origin [Origin] tells the gem of a method
      # @raise [UsageError] when nothing matches; the message has similar names
      #: (Array[MethodInfo], String | Set, ?sought: String, ?origin: Origin) -> Array[Integer]
      def self.find(methods, name, sought: "method", origin: Origin.new)
        return of_set(methods, name, origin) if name.is_a?(Set)
        raise UsageError, "an empty name fits no method" if name.empty?

        found = search(methods, name, origin)
        return found unless found.empty?

        near = hint(methods, name, origin: origin)
        raise UsageError, "no #{sought} #{name.inspect} in the recording#{near.empty? ? LISTED : near}"
      end

      # The same, where a name may match nothing.
      #: (Array[MethodInfo], String, ?Origin) -> Array[Integer]
      def self.search(methods, name, origin = Origin.new)
        tests(methods, name, origin).each do |test|
          found = (1...methods.size).select { |number| test.call(methods[number]) }
          return found unless found.empty?
        end
        []
      end

      def self.tests(methods, name, origin)
        inside = /(?:\A|::| in )#{Regexp.escape(name)}(?:[#.]|::)/
        [
          ->(method) { method.name == name },
          ->(method) { origin.gem?(method, name) },
          ->(method) { ends_with?(method.name, name) },
          ->(method) { name.include?("/") && method.path.include?(name) },
          ->(method) { method.name.match?(inside) },
          of_object(methods, name),
          ->(method) { method.name.include?(name) }
        ]
      end
      private_class_method :tests

      def self.of_object(methods, name)
        paths = nil
        lambda do |method|
          method.native? && (paths ||= ObjectMatch.search(ObjectMatch.paths(methods), name)).include?(method.path)
        end
      end
      private_class_method :of_object

      # A saved set is for many recordings, so not all of its names need to be in one.
      def self.of_set(methods, set, origin)
        found = set.names.flat_map { |name| search(methods, name, origin) }.uniq
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
      # @param origin [Origin, nil] nil: no name is taken for a gem's
      #: (Array[untyped], String, ?origin: Origin?) -> String
      def self.hint(methods, name, origin: nil)
        return "" unless defined?(DidYouMean::SpellChecker) && name.size <= 100

        gems = origin ? methods.filter_map { |method| origin.gem(method) }.uniq : []
        names = [*gems, *methods.map(&:name).select { |known| known.size <= 100 }.first(5000)].uniq
        near = DidYouMean::SpellChecker.new(dictionary: names).correct(name).first(2)
        near.empty? ? "" : "; did you mean #{near.join(" or ")}?"
      end
    end
  end
end
