# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Psych or JSON, which the program loads itself: what a result depends on beside the file, and whether the library's
    # own methods make it.
    # @api private
    class DataLibrary
      # What is known of a library. `methods` are replaced by those of the module `ours`. `called` are singleton methods
      # that they call. With all methods of `classes` (some versions lack the `optional` ones) these make the result,
      # where `usual` is true. `ready` is no longer nil when the library is loaded. `keywords` are known options, with
      # what is said of their values. `version` are constants. `own_file` ends the path of the file with the methods.
      Facts = Struct.new(:name, :methods, :parameters, :ours, :own_file, :ready, :usual, :called, :classes, :optional,
                         :keywords, :version, keyword_init: true)
      SIMPLE = [NilClass, TrueClass, FalseClass, Integer].to_h { |type| [type, true] }.freeze
      TEXT = ->(value) { value.inspect if SIMPLE[value.class] }
      NAMES = lambda do |value|
        names = value.map { |name| name.is_a?(Module) || name.is_a?(Symbol) ? name.to_s : name } if value.is_a?(Array)
        names.inspect if names&.all?(String)
      end
      # The result is this object itself, or does not depend on it (DataCache#bytes_of).
      FALLBACK = ->(value) { TEXT.call(value) || "an object" }
      ANY = ->(_) { "any" }

      PSYCH = Facts.new(
        name: :Psych, version: %i[VERSION LIBYAML_VERSION], own_file: "/psych.rb", ready: :domain_types,
        methods: %i[load_file safe_load_file unsafe_load_file], parameters: %i[req keyrest], ours: :PsychMethods,
        usual: ->(found) { !found.load_tags.key?(nil) }, # which would be the tag of all that has none
        called: %i[load safe_load unsafe_load parse parse_stream parser],
        classes: %w[Parser TreeBuilder Handlers::DocumentStream Visitors::Visitor Visitors::ToRuby Visitors::NoAliasRuby
                    ScalarScanner ClassLoader ClassLoader::Restricted Nodes::Node], optional: [],
        keywords: { symbolize_names: TEXT, freeze: TEXT, aliases: TEXT, permitted_classes: NAMES,
                    permitted_symbols: NAMES, fallback: FALLBACK, filename: ANY, strict_integer: TEXT,
                    parse_symbols: TEXT }
      ).freeze
      JSON = Facts.new(
        name: :JSON, version: %i[VERSION], own_file: "/json/common.rb", ready: :parser,
        methods: %i[load_file load_file!], parameters: %i[req opt], ours: :JSONMethods,
        usual: ->(found) { found.parser.equal?(found::Ext::Parser) && found::Parser.equal?(found.parser) },
        called: %i[parse parse! parser], classes: %w[Ext::Parser], optional: %w[Ext::ParserConfig ParserOptions],
        keywords: { symbolize_names: TEXT, freeze: TEXT, max_nesting: TEXT, allow_nan: TEXT }
      ).freeze
      private_constant :Facts, :SIMPLE, :TEXT, :NAMES, :FALLBACK, :ANY

      # @return [Module, nil] the library, once its methods are replaced
      attr_reader :module

      # @param facts PSYCH or JSON
      #: (untyped) -> void
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
        return false unless found.respond_to?(@facts.ready) && found.public_send(@facts.ready)

        replaced = @facts.methods.select { |method| own?(found, method) }
        return "no cache of data: #{name}.load_file is not the library's own" unless replaced.include?(:load_file)

        @version = [name, *@facts.version.map { |constant| found.const_get(constant) }].join("\0").freeze
        @folder = found.method(:load_file).source_location.first.delete_suffix(@facts.own_file)
        @made_by = makers(found)
        return "no cache of data: the program has changed #{name}" unless makers_own?(found)

        replace(found, replaced)
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

      # Has this YAML text a tag?
      # @return nil: it is not known
      #: (String) -> bool?
      def tags?(text)
        return false if @facts.name != :Psych || !text.include?("!")
        return if text.include?("\0") # perhaps UTF-16

        text = text.dup.force_encoding(Encoding::UTF_8).delete_prefix("\uFEFF")
        @module.parse_stream(text).any?(&:tag)
      end

      private

      def own?(found, name)
        return false unless found.respond_to?(name)

        method = found.method(name)
        method.owner.equal?(found.singleton_class) && method.parameters.map(&:first) == @facts.parameters &&
          method.source_location.first.end_with?(@facts.own_file)
      end

      # @return all methods that make a result, and the ancestors of their classes
      def makers(found)
        singleton = found.singleton_class
        methods = @facts.called.filter_map { |name| singleton.instance_method(name) if singleton.method_defined?(name) }
        types = classes(found)
        methods.concat(*types.map { |type| methods_of(type) })
        [methods, types.map { |type| type.ancestors - Object.ancestors }]
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
        names.map { |name| found.const_get(name) }
      end

      def methods_of(type)
        names = type.instance_methods(false) + type.private_instance_methods(false)
        names.map { |name| type.instance_method(name) }
      end

      def replace(found, replaced)
        ours = Native.const_get(@facts.ours)
        found.singleton_class.class_eval do
          replaced.each do |name|
            before = name.end_with?("!") ? :"pitwall_#{name[0..-2]}_before!" : :"pitwall_#{name}_before"
            alias_method(before, name)
            private(before)
            define_method(name, ours.instance_method(name))
          end
        end
      end
    end
  end
end
