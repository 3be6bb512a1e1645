# frozen_string_literal: true

require_relative "yaml_tags"

module Pitwall
  module Fastboot
    # A library that the program loads itself, such as Psych: what a result depends on beside the file, and whether the
    # library's own methods make it.
    # @api private
    class DataLibrary
      # Values of constants whose `inspect` shows the whole value.
      IN_KEY = ->(value) { [Integer, String, Symbol, Regexp, Float, NilClass].any? { |type| value.instance_of?(type) } }
      private_constant :IN_KEY

      # @return [Module, nil] the one whose methods are replaced, once they are
      attr_reader :place

      # @return [String, nil] why no result is kept
      attr_reader :changed

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

        replace(replaced)
        @module = found
        true
      end

      # Do the library's own methods make the result? Its methods and constants are looked at for the first call, and
      # again after each file of code that Ruby loads. Its settings and the methods of File are looked at for each call.
      #: (untyped) -> bool
      def own_result?(receiver)
        @own = own_makers? if @checked != Native.loads
        @checked = Native.loads
        @own && Native.files_as_usual? && @facts.usual.call(@module) && @facts.receiver.call(receiver)
      end

      # What the result of a method depends on beside the file.
      # @return [String, nil] nil: it is not known
      #: (Symbol, Hash[Symbol, untyped]?) -> String?
      def dependences(method, keywords)
        return unless keywords.nil? || (keywords.instance_of?(Hash) && keywords.default.nil? && !keywords.default_proc)

        text = "#{@version}\0#{method}\0#{Encoding.default_external}\0#{Encoding.default_internal}\0" \
               "#{Warning[:deprecated]}\0#{$VERBOSE ? true : false}"
        keywords&.each do |name, value|
          said = @facts.keywords[name]&.call(value) or return
          text << "\0#{name}\0#{said}"
        end
        text
      end

      # Has this YAML text a tag that may run code of the program?
      # @return nil: it is not known
      #: (String) -> bool?
      def tags?(text) = @facts.name == :Psych ? tags.any?(text) : false

      # A result as bytes.
      # @param receiver the object whose method has returned it
      # @return [String, nil] nil: it is not plain
      #: (untyped, untyped, Hash[Symbol, untyped]?) -> String?
      def dump(value, receiver, keywords) = @facts.bytes.dump(value, receiver, keywords)

      # The result that `dump` has written.
      #: (String, untyped, Hash[Symbol, untyped]?) -> untyped
      def load(bytes, receiver, keywords) = @facts.bytes.load(bytes, receiver, keywords)

      private

      def tags = @tags ||= YamlTags.new(@module, @facts.harmless)

      def own_makers?
        look if @version.nil? && @changed.nil?
        @changed.nil? && (@checked.nil? || makers == @made_by)
      end

      # Remembers what makes a result, and whether it is the library's own.
      def look
        @made_by = makers
        @changed = "no cache of data: the program has changed #{name}" unless makers_own?
        @version = [name, VERSION, *@made_by.last, *digests].join("\0").freeze
      rescue NameError => error # another version of the library
        @changed = "no cache of data: #{name} has no #{error.name}"
      end

      def own?(name)
        return false unless @place.method_defined?(name)

        method = @place.instance_method(name)
        method.owner.equal?(@place) && ours(method) &&
          method.source_location.first.end_with?(@facts.own_file)
      end

      # @return [Symbol, nil] the name of the module with our method
      def ours(method) = @facts.ours[method.parameters.map(&:first)]

      # @return what makes a result: methods, the ancestors and constants of the modules that have them, and those of
      #   the constants that have a simple value
      def makers
        modules = modules()
        methods = called.concat(*modules.map { |one| methods_of(one) + methods_of(one.singleton_class) + makes(one) })
        constants = modules.map { |one| constants(one) }
        [methods, modules.map { |one| one.ancestors - Object.ancestors - Class.ancestors }, constants,
         [*@facts.version.map { |name| @module.const_get(name) }, *simple(constants)]]
      end

      def called
        names = @facts.called&.select { |name| @place.method_defined?(name) }
        names ||= names_of(@place) - @facts.methods - @facts.methods.map { |name| before(name) }
        names.map { |name| @place.instance_method(name) }
      end

      def makes(type)
        return [] unless type.is_a?(Class)

        %i[new allocate].filter_map { |name| type.method(name).unbind if type.respond_to?(name) }
      end

      # Sorted by name. With code from the pack, Ruby may list the constants in another order.
      def constants(one)
        one.constants(false).sort.map { |name| [name, (one.const_get(name) unless one.autoload?(name))] }
      end

      def simple(constants) = constants.flatten.grep(IN_KEY).map(&:inspect)

      # The digests of the files that have these methods: somebody may have changed an installed gem.
      def digests
        paths = @made_by.first.filter_map { |method| method.source_location&.first }
        paths.uniq.sort.filter_map { |path| Native.read(path)&.first }
      end

      # Their ancestors begin with the modules themselves, unless something was prepended.
      def makers_own?
        @made_by.first.all? { |method| in_library?(method) } &&
          @made_by[1].zip(modules).all? { |list, one| list.first.equal?(one) }
      end

      def in_library?(method)
        file = method.source_location&.first
        return true if file.nil? || (file.start_with?("<internal:") && !file.include?("/")) # Ruby's own
        return @facts.evaluated.include?(method.name) if file == "(eval)" # Ruby 3.1 and 3.2 say no more

        file.delete_prefix("(eval at ").start_with?("#{@folder}/#{name.downcase}")
      end

      def modules
        names = @facts.modules + @facts.optional.select { |name| @module.const_defined?(name) }
        names.map { |name| @module.const_get(name) }
      end

      def methods_of(type) = names_of(type).map { |name| type.instance_method(name) }

      def names_of(type) = type.instance_methods(false) + type.private_instance_methods(false)

      # The name that a replaced method has now.
      def before(name) = name.end_with?("!") ? :"pitwall_#{name[0..-2]}_before!" : :"pitwall_#{name}_before"

      def replace(replaced)
        @folder = @place.instance_method(replaced.first).source_location.first.delete_suffix(@facts.own_file)
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
