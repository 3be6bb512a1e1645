# frozen_string_literal: true

module Pitwall
  module Fastboot
    # A library that the program loads itself, such as Psych: what a result depends on beside the file, and whether the
    # library's own methods make it.
    # @api private
    class DataLibrary
      # @return [Module, nil] the one whose methods are replaced, once they are
      attr_reader :place

      #: (DataFacts) -> void
      def initialize(facts)
        @facts = facts
      end

      #: () -> String
      def name = @facts.name.name

      # Replaces the library's methods, if the program has loaded it.
      # @return [Boolean, String] false: not yet; or why not
      #: () -> (bool | String)
      def install
        return false if Object.autoload?(@facts.name) || !Object.const_defined?(@facts.name, false)

        found = Object.const_get(@facts.name)
        return false unless @facts.ready.call(found)

        @place = @facts.place.call(found)
        replaced = @facts.methods.select { |method| own?(method) }
        main = @facts.methods.first
        return "no cache of data: #{main} of #{name} is not the library's own" unless replaced.include?(main)

        @folder = @place.instance_method(main).source_location.first.delete_suffix(@facts.own_file)
        @made_by = makers(found)
        return "no cache of data: the program has changed #{name}" unless makers_own?(found)

        versions = @facts.version.map { |constant| found.const_get(constant) }
        @version = [name, VERSION, *versions, *digests].join("\0").freeze
        replace(replaced)
        @module = found
        true
      end

      # Do the library's own methods make the result? Looks again after each file of code that Ruby loads.
      #: () -> bool
      def own_methods?
        loads = Native.loads
        return @own if @checked == loads

        @own = makers(@module) == @made_by && @facts.usual.call(@module)
        @checked = loads
        @own
      end

      # What the result of a method depends on beside the file.
      # @return [String, nil] nil: it is not known
      #: (Symbol, Hash[Symbol, untyped]?) -> String?
      def dependences(method, keywords)
        return unless keywords.nil? || (keywords.instance_of?(Hash) && keywords.default.nil? && !keywords.default_proc)

        text = "#{@version}\0#{method}\0#{Encoding.default_external}\0#{Encoding.default_internal}\0" \
               "#{Warning[:deprecated]}"
        keywords&.each do |name, value|
          said = @facts.keywords[name]&.call(value) or return
          text << "\0#{name}\0#{said}"
        end
        text
      end

      # Has this YAML text a tag that may run code of the program?
      # @return nil: it is not known
      #: (String) -> bool?
      def tags?(text)
        return false if @facts.name != :Psych || !text.include?("!")
        return if text.include?("\0") # perhaps UTF-16

        text = text.dup.force_encoding(Encoding::UTF_8).delete_prefix("\uFEFF")
        @module.parse_stream(text).any? { |node| node.tag && !@facts.harmless.include?(node.tag) }
      end

      # A result as bytes.
      # @param receiver the object whose method has returned it
      # @return [String, nil] nil: it is not plain
      #: (untyped, untyped, Hash[Symbol, untyped]?) -> String?
      def dump(value, receiver, keywords) = @facts.bytes.dump(value, receiver, keywords)

      # The result that `dump` has written.
      #: (String, untyped, Hash[Symbol, untyped]?) -> untyped
      def load(bytes, receiver, keywords) = @facts.bytes.load(bytes, receiver, keywords)

      private

      def own?(name)
        return false unless @place.method_defined?(name)

        method = @place.instance_method(name)
        method.owner.equal?(@place) && ours(method) &&
          method.source_location.first.end_with?(@facts.own_file)
      end

      # @return [Symbol, nil] the name of the module with our method
      def ours(method) = @facts.ours[method.parameters.map(&:first)]

      # @return all methods that make a result, and the ancestors of their classes
      def makers(found)
        types = classes(found)
        methods = called.concat(*types.map { |type| methods_of(type) })
        [methods, types.map { |type| type.ancestors - Object.ancestors - Class.ancestors }]
      end

      def called
        own = names_of(@place)
        names = @facts.called&.select { |name| @place.method_defined?(name) }
        names ||= own - @facts.methods - @facts.methods.map { |name| before(name) }
        names.map { |name| @place.instance_method(name) }
      end

      # The digests of the files that have these methods: somebody may have changed an installed gem.
      def digests
        paths = [*@made_by.first, *@facts.methods.map { |name| @place.instance_method(name) }]
                .filter_map { |method| method.source_location&.first }
        paths.uniq.sort.filter_map { |path| Native.read(path)&.first }
      end

      def makers_own?(found)
        methods, ancestors = @made_by
        @facts.usual.call(found) && methods.all? { |method| in_library?(method.source_location) } &&
          ancestors.zip(classes(found)).all? { |list, type| list.first.equal?(type) }
      end

      def in_library?(location)
        file = location&.first
        file.nil? || file == "(eval)" || file.delete_prefix("(eval at ").start_with?("#{@folder}/#{name.downcase}")
      end

      def classes(found)
        names = @facts.classes + @facts.optional.select { |name| found.const_defined?(name) }
        [*names.map { |name| found.const_get(name) },
         *@facts.singletons.map { |name| found.const_get(name).singleton_class }]
      end

      def methods_of(type) = names_of(type).map { |name| type.instance_method(name) }

      def names_of(type) = type.instance_methods(false) + type.private_instance_methods(false)

      # The name that a replaced method has now.
      def before(name) = name.end_with?("!") ? :"pitwall_#{name[0..-2]}_before!" : :"pitwall_#{name}_before"

      def replace(replaced)
        replaced.each do |name|
          ours = Native.const_get(ours(@place.instance_method(name)))
          @place.alias_method(before(name), name)
          @place.send(:private, before(name))
          @place.define_method(name, ours.instance_method(name))
        end
      end
    end
  end
end
