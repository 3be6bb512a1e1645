# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/project"
require "pitwall/errors"

module Pitwall
  module CLI
    # Saved sets of names, in the `.pitwall.yml` of the working directory or of a folder above, up to the working tree's
    # root: `blackbox: {framework: [rails, rack]}`. The options --blackbox, --hide and --focus take `@framework`.
    module NameSets
      FILE = ".pitwall.yml"
      KEY = "blackbox"
      # Bytes of the file, and names of a set.
      BYTES = 1024 * 1024
      private_constant :FILE, :KEY, :BYTES

      module_function

      # A name as it was typed, or the set that it names.
      # @raise [UsageError]
      #: (String, String) -> (String | Analyse::MethodMatch::Set)
      def expand(option, name)
        return name unless name.start_with?("@")

        file = file()
        sets = file ? read(file) : {}
        known = sets.empty? ? "there is none" : "it has #{sets.keys.map { |set| "@#{set}" }.join(", ")}"
        known += near(sets.keys, name)
        list = sets[name.delete_prefix("@")] or
          raise UsageError, "#{option} #{name}: no such set in #{file || FILE}; " \
                            "#{file ? known : "write it as #{KEY}: {#{name.delete_prefix("@")}: [NAME, NAME]}"}"

        Analyse::MethodMatch::Set.new(name, list)
      end

      # @return [String, nil] the nearest file
      #: () -> String?
      def file
        folder = Dir.pwd
        top = Project.root
        loop do
          path = File.join(folder, FILE)
          return path if File.file?(path)
          return if folder == top || folder == File.dirname(folder)

          folder = File.dirname(folder)
        end
      end

      # @return [Hash{String => Array<String>}]
      # @raise [UsageError]
      #: (String) -> Hash[String, Array[String]]
      def read(path)
        require "yaml"
        raise UsageError, "#{path}: has more than #{BYTES} bytes" if File.size(path) > BYTES

        text = File.read(path, encoding: Encoding::UTF_8)
        settings = YAML.safe_load(text)
        sets = settings.is_a?(Hash) ? settings.fetch(KEY, {}) : {}
        unless sets.is_a?(Hash)
          raise UsageError, "#{path}:#{line(text, KEY)}: #{KEY}: takes sets of names, " \
                            "e.g. {framework: [rails, rack]}"
        end

        sets.to_h { |name, list| [name.to_s, names(path, text, name, list)] }
      rescue Psych::SyntaxError => error
        raise UsageError, "#{path}:#{error.line}: #{error.problem}"
      rescue Psych::Exception, ArgumentError, SystemCallError => error
        raise UsageError, "#{path}: #{error.message.lines.first&.chomp}"
      end

      def names(path, text, set, list)
        list = [*list]
        return list if list.any? && list.all? { |name| name.is_a?(String) && !name.empty? }

        raise UsageError, "#{path}:#{line(text, KEY, set.to_s)}: #{KEY}: #{set}: takes a list of names, " \
                          "e.g. [rails, rack]"
      end
      private_class_method :names

      # The line of a key within others.
      def line(text, *keys)
        found = node = YAML.parse(text).root
        keys.each do |key|
          pairs = node.children.to_a.each_slice(2)
          pair = pairs.find { |name, _| name.respond_to?(:value) && name.value == key } or break
          found, node = pair
        end
        found.start_line + 1
      end
      private_class_method :line

      # "; did you mean @framework?", or nothing.
      def near(sets, name)
        Analyse::MethodMatch.hint(sets.map { |set| Analyse::MethodInfo.new("@#{set}") }, name)
      end
      private_class_method :near
    end
    private_constant :NameSets
  end
end
