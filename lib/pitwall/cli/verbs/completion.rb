# frozen_string_literal: true

require "pitwall/cli/support/command"
require "pitwall/show"

module Pitwall
  module CLI
    # `pitwall completion SHELL`: a script that completes verbs, options and their values, made from the verbs' own
    # parsers.
    class Completion < Command
      # What an option's value is a file's name by.
      FILES = /\A(FILE|OUT|DIR|GLOB)/.freeze
      # And a verb's operands, of its usage; those that say which end: FILE.pit, BENCH.rb.
      OPERANDS = /\b(?:FILE|FOLDER|BENCH|LOG|[A-Z])\b(?:\.([a-z]+))?/.freeze
      private_constant :FILES, :OPERANDS

      class << self
        #: () -> String
        def summary = "a script that completes this command's words in a shell"

        #: () -> Array[[String, String]]
        def examples
          [
            ["source <(pitwall completion bash)", "for this shell"],
            ["pitwall completion fish > ~/.config/fish/completions/pitwall.fish", "for all"]
          ]
        end

        #: () -> String
        def usage = Show::Completion::SHELLS.keys.join(" | ")

        #: () -> Array[String]
        def argument_words = Show::Completion::SHELLS.keys

        # What can be typed after each verb.
        #: () -> Array[Show::Completion::Verb]
        def verbs = COMMANDS.keys.map { |name| describe(CLI.command(name)) }

        private

        def describe(command)
          dashes = :dashes if command.usage.include?("-- CMD")
          Show::Completion::Verb.new(name: command.verb, summary: command.summary, words: command.argument_words,
                                     files: files(command.usage), options: options_of(command),
                                     command: command.runs_command? ? :operand : dashes)
        end

        # Those of all its forms; what an option of several takes in one of them is offered.
        def options_of(command)
          found = [command, *command.other_forms].flat_map do |form|
            form.new(out: nil, err: nil).switches.map { |switch| option(switch, form.option_words) }
          end
          found.group_by(&:names).values.map do |same|
            same.first.tap { |option| option.words = same.flat_map(&:words).uniq if same.all?(&:words) }
          end
        end

        # The ends of names that a verb takes, none where any will do; nil where it takes no files.
        def files(usage)
          ends = usage.scan(OPERANDS).map(&:first)
          ends.compact.uniq unless ends.empty?
        end

        # A plural (KEYS) takes several words, with commas between.
        def option(switch, words)
          value = switch.arg&.strip&.delete_prefix("=")
          names = switch.short.map { |name| "-#{name.delete_prefix("-")}" } + switch.long
          Show::Completion::Option.new(
            names: names, value: value&.delete("[]"), optional: value&.start_with?("["),
            words: words_of(switch, words, names), list: value&.end_with?("S") || false,
            files: (value.scan(/\.([a-z]+)/).flatten if value&.match?(FILES)), text: switch.desc.join(" ")
          )
        end

        def words_of(switch, words, names)
          found = words[names.last] || (switch.pattern.keys if switch.pattern.respond_to?(:keys))
          found&.map(&:to_s)
        end
      end

      #: (Array[String]) -> Integer
      def run(args)
        shells = self.class.argument_words
        raise UsageError, "no shell: pitwall completion #{shells.join("|")}" if args.empty?
        raise UsageError, "one shell at a time: leave out #{args[1]}" if args.size > 1
        unless shells.include?(args.first)
          raise UsageError, "no completion for #{args.first}; it is there for #{shells.join(", ")}"
        end

        @out.puts(Show::Completion.script(args.first, self.class.verbs))
        Status::OK
      end
    end
  end
end
