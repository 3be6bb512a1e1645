# frozen_string_literal: true

module Pitwall
  module Show
    module Completion
      # Completion for zsh 5. The script is sourced, or installed as a file `_pitwall` in a folder of `fpath`.
      class Zsh
        #: (Array[Verb]) -> void
        def initialize(verbs)
          @verbs = verbs
        end

        # The script.
        #: () -> String
        def to_s
          <<~ZSH
            #compdef pitwall
            # zsh completion of pitwall #{VERSION}. In ~/.zshrc, after compinit: source <(pitwall completion zsh)

            _pitwall_verbs() {
              local -a verbs=(
            #{@verbs.map { |verb| "    #{quote("#{verb.name}:#{Completion.short(verb.summary)}")}" }.join("\n")}
              )
              _describe verb verbs
            }

            _pitwall() {
              local curcontext=$curcontext state line
              typeset -A opt_args
              _arguments -C '(- *)'{-h,--help}'[help]' '(- *)'{-v,--version}'[version]' \\
                '1:verb:_pitwall_verbs' '*::argument:->rest' && return
              [[ $state == rest ]] || return
              case $words[1] in
            #{@verbs.map { |verb| arguments(verb) }.join("\n")}
                help) _arguments '1:verb:_pitwall_verbs' ;;
              esac
            }

            if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
              _pitwall "$@"
            else
              compdef _pitwall pitwall
            fi
          ZSH
        end

        private

        def arguments(verb)
          specs = verb.options.flat_map { |option| option.names.map { |name| quote(spec(name, option)) } }
          lines = (specs + operands(verb)).map { |line| "        #{line}" }
          "    #{verb.name})\n      _arguments -S \\\n#{lines.join(" \\\n")} ;;"
        end

        # An option's specification for _arguments: '*--to=[its help]:FORMAT:(a b)'
        def spec(name, option)
          text = "[#{Completion.short(option.text).gsub(/[\[\]:\\]/) { |char| "\\#{char}" }}]"
          return "*#{name}#{text}" unless option.value

          # `=`: the value follows `=`, or is the next word. `+`: the value follows the letter, or is the next word.
          sign = name.start_with?("--") ? "=" : "+"
          value = option.value.gsub(/[:\\]/) { |char| "\\#{char}" }
          "*#{name}#{sign}#{text}#{":" if option.optional}:#{value}:#{action(option)}"
        end

        def action(option)
          if option.words
            return option.list ? "_sequence compadd - #{option.words.join(" ")}" : "(#{option.words.join(" ")})"
          end

          option.files ? files(option) : ""
        end

        # _files offers all files where none match the pattern. Parentheses without a | would be flags of the pattern.
        def files(taker)
          return "_files" if taker.files.empty?

          "_files -g \"*.#{taker.files.one? ? taker.files.first : "(#{taker.files.join("|")})"}\""
        end

        def operands(verb)
          return ["'(-):command:_command_names -e'", "'*::argument:_normal'"] if verb.command == :operand
          return ["'1:#{verb.name}:(#{verb.words.join(" ")})'"] if verb.words

          verb.files ? [quote("*:file:#{files(verb)}")] : []
        end

        def quote(text) = "'#{text.gsub("'") { "'\\''" }}'"
      end
    end
  end
end
