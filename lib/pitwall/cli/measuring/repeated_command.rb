# frozen_string_literal: true

require "shellwords"

module Pitwall
  module CLI
    # The command line of a comparison as one that names its sides by the ids of their trees. Trees stay the same where
    # commits are rewritten, so the command measures the same code again in every clone that has them.
    #
    #   RepeatedCommand.words(["--dirty", "--pairs", "9", "x.rb"], trees: ["1a2b…", "6f5e…"], **more)
    #   # => ["pitwall", "compare", "--rev", "1a2b…", "--rev", "6f5e…", "--pairs", "9", "x.rb"]
    module RepeatedCommand
      # Options that define sides, and those that say where the report goes.
      LEFT_OUT = %w[--rev --dirty --ruby --ruby-src --env --gem --patch --stub -e --and --as
                    --record --out --format --fail-if --quiet --details].freeze
      UNQUOTED = %r{\A[\w@%+=:,./^-]+\z}.freeze # words that a shell takes without quotes
      private_constant :LEFT_OUT, :UNQUOTED

      module_function

      # Whether two sides differ in their tree alone, and each tree is one that a repository can have.
      #: (Array[Workspace::Side]) -> bool
      def possible?(sides)
        same = sides.map { |side| side.dup.tap { |copy| copy.rev = copy.dirty = copy.name = nil } }.uniq
        sides.size == 2 && same.one? && same.first.patches.empty?
      end

      # The words of the command.
      # @param argv the words after `pitwall compare`
      # @param takes_value tells whether an option takes a value
      #: (
      #    Array[String], trees: Array[String], sides: Array[Workspace::Side], takes_value: ^(String) -> bool
      #  ) -> Array[String]
      def words(argv, trees:, sides:, takes_value:)
        own = argv.take_while { |word| word != "--" }
        named = trees.zip(sides).flat_map { |tree, side| ["--rev", tree, *joined(side)] }
        ["pitwall", "compare", *named, *code(sides.first), *rest(own, takes_value), *argv.drop(own.size)]
      end

      # The command line, from the top of the repository.
      # @param folder path from there to the folder in which the command runs
      #: (Array[String], ?folder: String) -> String
      def line(words, folder: "")
        typed = words.map { |word| quoted(word) }.join(" ")
        folder.empty? ? typed : "cd #{quoted(folder)} && #{typed}"
      end

      # The folder and the words of such a line; nil for another text.
      #: (String) -> [String, Array[String]]?
      def parse(line)
        words = Shellwords.split(line)
        folder = words[0] == "cd" && words[2] == "&&" ? words.shift(3)[1] : ""
        [folder, words] if words.first(2) == %w[pitwall compare]
      rescue ArgumentError
        nil
      end

      # A word as a shell reads it.
      #: (String) -> String
      def quoted(word) = word.match?(UNQUOTED) ? word : "'#{word.gsub("'") { "'\\''" }}'"

      # What both sides have beside their tree, except for the code.
      def joined(side)
        parts = side.env.map { |pair| ["--env", pair.join("=")] } + side.gems.map { |pair| ["--gem", pair.join("@")] }
        parts << ["--ruby", Shellwords.join(side.ruby)] if side.ruby
        parts << ["--ruby-src", side.ruby_source.join("@")] if side.ruby_source
        parts << ["--stub", side.stub] if side.stub
        parts.flat_map { |words| ["--and", *words] }
      end
      private_class_method :joined

      def code(side) = side.code ? ["-e", side.code] : []
      private_class_method :code

      # The words without the options that are left out, and without their values.
      def rest(argv, takes_value)
        kept = []
        words = argv.dup
        until words.empty?
          word = words.shift
          name = word[/\A(?:--[^=]+|-e)/]
          value = word == name && takes_value.call(name) ? [words.shift] : []
          kept.push(word, *value) unless LEFT_OUT.include?(name)
        end
        kept
      end
      private_class_method :rest
    end
  end
end
