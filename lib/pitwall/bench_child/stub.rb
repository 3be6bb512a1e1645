# frozen_string_literal: true

module Pitwall
  module Bench
    # Replaces a method by an empty one (`--stub Foo#bar`), to find out how much of the time that method takes.
    module Stub
      # @param name [String] "Foo#bar" or "Foo.bar"
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

      # The empty method takes the same arguments and allocates nothing. A method with rest parameters
      # becomes one with an anonymous `*` or `**`, for which Ruby makes no Array or Hash. Prepending puts it
      # before all other definitions.
      def self.replace(owner, method, visibility)
        kinds = method.parameters.map(&:first)
        parameters = method.parameters.each_with_index.filter_map do |(kind, name), index|
          case kind
          when :req, :opt then "a#{index} = nil"
          when :key, :keyreq then "#{name}: nil"
          end
        end
        if (kinds & %i[rest keyrest nokey]).any?
          parameters = [*("*" if kinds.include?(:rest)), *("**" if kinds.include?(:keyrest))]
        end
        empty = Module.new
        if plain?(method.name)
          empty.module_eval("def #{method.name}(#{parameters.join(", ")}); end", __FILE__, __LINE__)
        else
          empty.send(:define_method, method.name) { |*, **| nil }
        end
        empty.send(visibility, method.name)
        owner.send(:prepend, empty)
      end

      OPERATOR = %r{\A(?:[+\-*/%~!^&|<>`]|\*\*|[+\-!~]@|<<|>>|<=|>=|<=>|==|===|=~|!=|!~|\[\]=?)\z}.freeze
      private_constant :OPERATOR

      # Whether `def` takes the name.
      def self.plain?(name)
        name.match?(/\A[[:alpha:]_]\w*[?!=]?\z/) || name.match?(OPERATOR)
      end

      def self.visibility(owner, name)
        %w[private protected].find { |kind| owner.send("#{kind}_method_defined?", name) } || "public"
      end
      private_class_method :replace, :plain?, :visibility
    end
  end
end
