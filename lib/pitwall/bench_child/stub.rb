# frozen_string_literal: true

module Pitwall
  module Bench
    # Empties a method, to test the suspicion that it is what takes the time.
    module Stub
      #: (String) -> void
      def self.empty(name)
        match = /\A((?:::)?[A-Z]\w*(?:::[A-Z]\w*)*)([#.])(.+)\z/m.match(name)
        raise Misuse, "#{name.inspect} names no method: Foo#bar or Foo.bar" unless match

        owner = Object.const_get(match[1])
        owner = owner.singleton_class if match[2] == "."
        method = owner.instance_method(match[3])
        replace(owner, method, visibility(owner, method.name))
      rescue NameError
        raise Misuse, "#{name} doesn't exist once the benchmark is loaded: give the name of a method that does"
      end

      # With the parameters it had, where they can be had without an Array or a Hash for the rest: the empty method must allocate
      # nothing. Prepended, so that it comes before all others.
      def self.replace(owner, method, visibility)
        kinds = method.parameters.map(&:first)
        parameters = method.parameters.each_with_index.filter_map do |(kind, name), index|
          case kind
          when :req, :opt then "a#{index} = nil"
          when :key, :keyreq then "#{name}: nil"
          end
        end
        parameters = [*("*" if kinds.include?(:rest)), *("**" if kinds.include?(:keyrest))] if (kinds & %i[rest keyrest nokey]).any?
        empty = Module.new
        if plain?(method.name)
          empty.module_eval("def #{method.name}(#{parameters.join(", ")}); end", __FILE__, __LINE__)
        else
          empty.send(:define_method, method.name) { |*, **| nil }
        end
        empty.send(visibility, method.name)
        owner.send(:prepend, empty)
      end

      def self.plain?(name)
        name.match?(/\A[[:alpha:]_]\w*[?!=]?\z/) || name.match?(%r{\A(?:[+\-*/%~!^&|<>`]|\*\*|[+\-!~]@|<<|>>|<=|>=|<=>|==|===|=~|!=|!~|\[\]=?)\z})
      end

      def self.visibility(owner, name)
        %w[private protected].find { |kind| owner.send("#{kind}_method_defined?", name) } || "public"
      end
      private_class_method :replace, :plain?, :visibility
    end
  end
end
