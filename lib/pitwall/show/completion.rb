# frozen_string_literal: true

require "pitwall/version"

module Pitwall
  module Show
    # Completion of the command line, as a script for a shell: one class a shell, made from the same description of the verbs.
    module Completion
      autoload :Bash, "pitwall/show/completion/bash"
      autoload :Fish, "pitwall/show/completion/fish"
      autoload :Zsh, "pitwall/show/completion/zsh"

      # files: it takes files, whose names end in one of these (none: any) · words: it takes one of these · command: nil, :dashes (`-- CMD`), or :operand (the first word
      # that is no option begins it as well).
      Verb = Struct.new(:name, :summary, :options, :files, :words, :command, keyword_init: true) do
        # The names of its options, or of some.
        #: () { (Option) -> boolish } -> Array[String]
        def names(&block) = (block ? options.select(&block) : options).flat_map(&:names)
      end

      # names: ["-h", "--help"] · value: "FORMAT", nil where it takes none · words that it takes, several with commas where
      # `list` · files: it takes a file, as of a verb.
      Option = Struct.new(:names, :value, :optional, :words, :list, :files, :text, keyword_init: true) do
        # Whether the next word is the option's, whatever it is.
        #: () -> bool
        def takes_word? = !value.nil? && !optional
      end

      SHELLS = { "bash" => :Bash, "zsh" => :Zsh, "fish" => :Fish }.freeze

      # The script.
      #: (String, Array[Verb]) -> String
      def self.script(shell, verbs) = const_get(SHELLS.fetch(shell)).new(verbs).to_s

      # Options before any verb.
      GLOBAL = %w[--help --version].freeze
      # What a menu has room for.
      TEXT = 60
      private_constant :TEXT

      # The first words of a text.
      #: (String) -> String
      def self.short(text)
        text.size <= TEXT ? text : "#{text[0, text.rindex(" ", TEXT) || TEXT].sub(/[\s,;:(]+\z/, "")}…"
      end
    end
  end
end
