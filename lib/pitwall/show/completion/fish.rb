# frozen_string_literal: true

module Pitwall
  module Show
    module Completion
      # Completion for fish 3.
      class Fish
        #: (Array[Verb]) -> void
        def initialize(verbs)
          @verbs = verbs
        end

        # The script.
        #: () -> String
        def to_s
          <<~FISH
            # fish completion of pitwall #{VERSION}. In ~/.config/fish/config.fish: pitwall completion fish | source

            # Whether the verb is the given one, and the cursor is not in the user's own command.
            function __pitwall_verb
                set -l words (commandline -opc)
                test "$words[2]" = "$argv[1]"; and not __pitwall_command_at >/dev/null
            end

            # Prints the index of the first word of the user's own command. Fails where there is none.
            function __pitwall_command_at
                set -l words (commandline -opc)
                if set -l at (contains -i -- -- $words)
                    math $at + 1
                    return 0
                end
                contains -- "$words[2]" #{operand_verbs.join(" ")}; or return 1
                set -l skip 0
                for at in (seq 3 (count $words))
                    set -l word $words[$at]
                    if test $skip = 1
                        set skip 0
                    else if contains -- "$words[2] $word" #{options_with_value.join(" ")}
                        set skip 1
                    else if not string match -q -- '-*' $word
                        echo $at
                        return 0
                    end
                end
                return 1
            end

            function __pitwall_command
                set -l words (commandline -opc)
                set -l at (__pitwall_command_at); or set at (math (count $words) + 1)
                set -l own
                test $at -le (count $words); and set own (string escape -- $words[$at..-1])
                complete -C (string join ' ' -- $own (commandline -ct | string collect -a))
            end

            # Files whose names end in one of the given words, and folders; all files where there are none.
            function __pitwall_files
                set -l all (complete -C "__fish_command_without_completions "(commandline -ct))
                set -l own (string match -r -- '^.*\\.(?:'(string join '|' $argv)')$' $all)
                test -n "$own"; and set all $own (string match -r -- '^.*/$' $all)
                printf '%s\\n' $all
            end

            complete -c pitwall -f
            complete -c pitwall -n __fish_use_subcommand -s h -l help -d 'help'
            complete -c pitwall -n __fish_use_subcommand -s v -l version -d 'version'
            complete -c pitwall -n __fish_use_subcommand -a help -d 'explain a verb'
            complete -c pitwall -n '__pitwall_verb help' -a #{quote(@verbs.map(&:name).join(" "))}
            complete -c pitwall -n '__pitwall_command_at >/dev/null' -a '(__pitwall_command)'
            #{@verbs.flat_map { |verb| lines(verb) }.join("\n")}
          FISH
        end

        private

        def operand_verbs = @verbs.select { |verb| verb.command == :operand }.map(&:name)

        # "VERB OPTION" for each option whose next word is its value.
        def options_with_value
          @verbs.flat_map { |verb| verb.names(&:takes_word?).map { |name| quote("#{verb.name} #{name}") } }
        end

        def lines(verb)
          condition = "complete -c pitwall -n #{quote("__pitwall_verb #{verb.name}")}"
          summary = quote(Completion.short(verb.summary))
          lines = ["complete -c pitwall -n __fish_use_subcommand -a #{verb.name} -d #{summary}"]
          lines << "#{condition} #{files(verb)}" if verb.files
          lines << "#{condition} -a #{quote(verb.words.join(" "))}" if verb.words
          lines << "#{condition} -a '(__pitwall_command)'" if verb.command == :operand
          lines.concat(verb.options.map { |option| "#{condition} #{option(option)}" })
        end

        def option(option)
          names = option.names.map do |name|
            name.start_with?("--") ? "-l #{name.delete_prefix("--")}" : "-s #{name.delete_prefix("-")}"
          end
          names << value(option) if option.value
          "#{names.join(" ")} -d #{quote(Completion.short(option.text))}"
        end

        def files(taker) = taker.files.empty? ? "-F" : "-a #{quote("(__pitwall_files #{taker.files.join(" ")})")}"

        def value(option)
          if option.words
            words = option.words.join(" ")
            return "-x -a #{quote(option.list ? "(__fish_append , #{words})" : words)}"
          end
          return "-r #{files(option)}" if option.files

          option.optional ? "" : "-x"
        end

        def quote(text) = "'#{text.gsub(/[\\']/) { |char| "\\#{char}" }}'"
      end
    end
  end
end
