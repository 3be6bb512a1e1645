# frozen_string_literal: true

require "pitwall/version"

module Pitwall
  module Show
    # Generates scripts that complete Pitwall's command line: one class for each shell. All classes use the same
    # description of the verbs.
    module Completion
      autoload :Bash, "pitwall/show/completion/bash"
      autoload :Fish, "pitwall/show/completion/fish"
      autoload :Zsh, "pitwall/show/completion/zsh"

      # name:    e.g. "report"
      # summary: one line, for menus
      # options: Array of Option
      # files:   endings of the files that the verb takes, e.g. ["pit"]; [] for any files; nil for no files
      # words:   words that the verb takes instead of files, or nil
      # command: nil; :dashes: the verb takes a command after `--`; :operand: the first word that is no option begins a
      #          command too
      Verb = Struct.new(:name, :summary, :options, :files, :words, :command, keyword_init: true) do
        # The names of all options, or of the options for which the block returns true.
        #: () ?{ (Option) -> boolish } -> Array[String]
        def names(&block) = (block ? options.select(&block) : options).flat_map(&:names)
      end

      # names:    e.g. ["-h", "--help"]
      # value:    the value's name, e.g. "FORMAT"; nil for an option without a value
      # optional: whether the value may be missing
      # words:    words that the option takes, or nil
      # list:     whether the option takes several words with commas between
      # files:    endings of the files that the option takes, as in Verb
      # text:     the option's help, for menus
      Option = Struct.new(:names, :value, :optional, :words, :list, :files, :text, keyword_init: true) do
        # Whether the word after the option is always its value.
        #: () -> bool
        def takes_word? = !value.nil? && !optional
      end

      SHELLS = { "bash" => :Bash, "zsh" => :Zsh, "fish" => :Fish }.freeze

      # The completion script of a shell: "bash", "zsh" or "fish".
      #: (String, Array[Verb]) -> String
      def self.script(shell, verbs) = const_get(SHELLS.fetch(shell)).new(verbs).to_s

      # Options of `pitwall` itself, before any verb.
      GLOBAL = %w[--help --version].freeze
      # Characters of a text in a menu.
      TEXT = 60
      private_constant :TEXT

      # The first words of a text, as many as fit a menu.
      #: (String) -> String
      def self.short(text)
        text.size <= TEXT ? text : "#{text[0, text.rindex(" ", TEXT) || TEXT].sub(/[\s,;:(]+\z/, "")}…"
      end
    end
  end
end
