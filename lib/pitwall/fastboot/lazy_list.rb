# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Which gems of a bundle can be loaded when they are first used, and what has to be known of them: a file beside the
    # pack. `pitwall boot cache lazy` writes it (GemTrial finds the gems).
    # @api private
    module LazyList
      # A gem that Bundler.require would load.
      #   name         the gem
      #   file         the path of a file. Requiring the gem loads this file. Autoloads have this string itself, so the
      #                string is interned (-file)
      #   required     what the Gemfile says after `require:`; nil: nothing, so that the gem's name is required
      #   ns           how long loading it took
      #   constants    pairs of a module's name and a constant that the gem defines in it
      #   files        pairs of a file's path and the name by which `require` finds the file. Such a file may define
      #                one of the constants. So a program that requires such a file needs the whole gem first. The name
      #                is nil if $LOAD_PATH does not lead to the file
      #   changes      sentences that say why the gem can't wait. Empty: the gem can wait
      Entry = Struct.new(:name, :file, :required, :ns, :constants, :files, :changes, keyword_init: true) do
        # The constants as a program writes them: "Rouge", "Rack::Cors".
        #: () -> Array[String]
        def constant_names = constants.map { |holder, name| holder == "Object" ? name : "#{holder}::#{name}" }

        # All that a program may give to `require` to get one of the files.
        #: () -> Array[String]
        def names
          files.flat_map do |path, name|
            [path, *name].flat_map { |text| text.end_with?(".rb", ".so") ? [text, text[0..-4]] : [text] }
          end.uniq
        end
      end

      # entries: of the gems that wait
      # memory:  the peak memory of the command, run without the accelerator, in MiB; 0: unknown
      List = Struct.new(:entries, :memory)

      LEAST_NS = 1_000_000 # gems that are loaded faster are not worth it
      TRIED = ".try" # ends the name of a list that is being tried
      LONGEST = 1 << 24 # bytes of the file
      MOST_MEMORY = 1 << 20 # MiB
      FIRST_LINE = "pitwall lazy gems 1"
      private_constant :LONGEST, :MOST_MEMORY, :FIRST_LINE

      module_function

      # The path of a bundle's list. It changes with the Gemfile, the lockfile, the environment of Rails, and Ruby. A
      # list that is being tried is used only with PITWALL_FASTBOOT_LAZY=try.
      # @param definition [Bundler::Definition]
      #: (String, untyped) -> String
      def path(folder, definition)
        files = [*(definition.gemfiles if definition.respond_to?(:gemfiles)), definition.lockfile].compact
        texts = files.map { |file| File.binread(file.to_s) }
        environment = ENV["RAILS_ENV"] || ENV["RACK_ENV"] || "development"
        digest = Native.digest([Format.identity, environment.b, *texts].join("\0"))
        ending = TRIED if ENV["PITWALL_FASTBOOT_LAZY"] == "try"
        File.join(folder, "#{Folder::LAZY_GEMS}#{digest.unpack1("H16")}#{ending}")
      end

      # @return [List, nil] nil: there is no such file, others could have written it, or it is no list
      #: (String) -> List?
      def read(path) = (parse(Folder.text(path, LONGEST)) unless Folder.doubtful?(path))

      #: (String) -> List?
      def parse(text)
        first, *lines = text.lines("\n", chomp: true)
        return unless first == FIRST_LINE && text.valid_encoding?

        lines.each_with_object(List.new([], 0)) do |line, list|
          entries = list.entries
          kind, *rest = line.split("\t")
          case kind
          when "memory" then list.memory = rest.first.to_i.clamp(0, MOST_MEMORY)
          when "gem"
            name, file, ns, required = rest
            entries << Entry.new(name: name, file: -file, required: required, ns: ns.to_i, constants: [], files: [],
                                 changes: [])
          when "constant" then entries.last.constants << rest
          when "file" then entries.last.files << rest
          when "change" then entries.last.changes << rest.first
          end
        end
      end

      #: (List) -> String
      def text(list)
        lines = list.entries.flat_map do |entry|
          [["gem", entry.name, entry.file, entry.ns, *entry.required],
           *entry.constants.map { |pair| ["constant", *pair] },
           *entry.files.map { |pair| ["file", *pair.compact] },
           *entry.changes.map { |change| ["change", change] }]
        end
        plain = lines.map { |fields| fields.map { |field| field.to_s.tr("\t\n", "  ") }.join("\t") }
        [FIRST_LINE, "memory\t#{list.memory}", *plain, ""].join("\n")
      end
    end
  end
end
