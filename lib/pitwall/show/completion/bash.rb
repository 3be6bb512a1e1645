# frozen_string_literal: true

module Pitwall
  module Show
    module Completion
      # Completion for bash 4 and newer. The package bash-completion is not needed.
      class Bash
        #: (Array[Verb]) -> void
        def initialize(verbs)
          @verbs = verbs
        end

        # The script.
        #: () -> String
        def to_s
          <<~BASH
            # bash completion of pitwall #{VERSION}. In ~/.bashrc: source <(pitwall completion bash)

            _pitwall_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }

            _pitwall_list() {
                local before=
                [[ $cur == *,* ]] && before=${cur%,*},
                COMPREPLY=($(compgen -P "$before" -W "$1" -- "${cur##*,}"))
            }

            # Files whose names end in one of the given words, and folders; all files where there are none.
            _pitwall_files() {
                local IFS=$'\\n' end
                compopt -o filenames 2>/dev/null
                COMPREPLY=()
                for end; do COMPREPLY+=($(compgen -f -X "!*.$end" -- "$cur")); done
                ((${#COMPREPLY[@]})) &&
                    COMPREPLY=($(printf '%s\\n' "${COMPREPLY[@]}" $(compgen -d -- "$cur") | sort -u))
                ((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -f -- "$cur"))
            }

            # Completes the user's own command, which begins at word $1, as bash does.
            _pitwall_command() {
                if declare -F _command_offset >/dev/null; then _command_offset "$1"
                elif ((COMP_CWORD == $1)); then
                    compopt -o filenames 2>/dev/null
                    COMPREPLY=($(compgen -c -- "$cur"))
                else _pitwall_files
                fi
            }

            _pitwall_takes_word() {
                case "$1" in
            #{takes_word.map { |line| "        #{line}" }.join("\n")}
                esac
                return 1
            }

            _pitwall() {
                local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} at= i
                COMPREPLY=()
                if [[ $cur == "=" ]]; then cur=
                elif [[ $prev == "=" ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}
                fi
                if ((COMP_CWORD == 1)); then
                    _pitwall_words "#{[*@verbs.map(&:name), "help", *GLOBAL].join(" ")}"
                    return
                fi
                for ((i = 2; i < COMP_CWORD; i++)); do
                    case "${COMP_WORDS[i]}" in
                        --) at=$((i + 1)); break ;;
                        =) ((i++)) ;;
                        -*) _pitwall_takes_word "$verb ${COMP_WORDS[i]}" &&
                                [[ ${COMP_WORDS[i + 1]} != "=" ]] && ((i++)) ;;
                        *) #{operand("at=$i; break")} ;;
                    esac
                done
                if [[ -z $at && $cur != -* ]] && ((i == COMP_CWORD)); then #{operand("at=$i")}; fi
                if [[ -n $at ]]; then
                    _pitwall_command "$at"
                    return
                fi
                case "$verb $prev" in
            #{values.map { |line| "        #{line}" }.join("\n")}
                esac
                case "$verb" in
            #{@verbs.map { |verb| "        #{verb.name}) #{operands(verb)} ;;" }.join("\n")}
                    help) _pitwall_words "#{@verbs.map(&:name).join(" ")}" ;;
                esac
            }

            complete -F _pitwall pitwall
          BASH
        end

        private

        def takes_word
          @verbs.filter_map do |verb|
            names = verb.names(&:takes_word?)
            "#{names.map { |name| "\"#{verb.name} #{name}\"" }.join("|")}) return 0 ;;" if names.any?
          end
        end

        # Lines of a `case`: option → completion of its value.
        def values
          @verbs.flat_map do |verb|
            verb.options.select(&:value).filter_map do |option|
              pattern = option.names.map { |name| "\"#{verb.name} #{name}\"" }.join("|")
              if option.words
                function = option.list ? "_pitwall_list" : "_pitwall_words"
                "#{pattern}) #{function} \"#{option.words.join(" ")}\"; return ;;"
              elsif option.files then "#{pattern}) #{files(option)}; return ;;"
              elsif option.takes_word? then "#{pattern}) return ;;"
              end
            end
          end
        end

        def files(taker) = ["_pitwall_files", *taker.files].join(" ")

        # Code that runs the action for verbs whose first operand begins a command.
        def operand(action)
          verbs = @verbs.select { |verb| verb.command == :operand }.map(&:name)
          "case \"$verb\" in #{verbs.join("|")}) #{action} ;; esac"
        end

        def operands(verb)
          options = "_pitwall_words \"#{verb.names.join(" ")}\""
          other = verb.words ? "_pitwall_words \"#{verb.words.join(" ")}\"" : verb.files ? files(verb) : ":"
          "if [[ $cur == -* ]]; then #{options}; else #{other}; fi"
        end
      end
    end
  end
end
