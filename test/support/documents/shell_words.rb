# frozen_string_literal: true

# The commands of a shell block, each as a list of words, without comments and variables before the command.
#
#   ShellWords.commands("A=1 pitwall report x.pit | head # the report")
#   # => [["pitwall", "report", "x.pit"], ["head"]]
module ShellWords
  TOKEN = /
    (?<comment>\#.*)                              # to the end of the line
    | (?<end>&&|\|\||[|;&\n)]|<\()                # ends a command; "<(" begins another
    | (?<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"|;&)])+)
  /x.freeze

  module_function

  #: (String) -> Array[Array[String]]
  def commands(text)
    commands = [[]]
    text = text.gsub(/\\\n\s*/, " ")
    until text.empty?
      text = text.sub(/\A[ \t]+/, "")
      break if text.empty?

      match = TOKEN.match(text) or break
      match[:end] ? commands << [] : (commands.last << unquoted(match[:word]) if match[:word])
      text = match.post_match
    end
    commands.map { |words| words.drop_while { |word| word.match?(/\A[A-Za-z_]+=/) } }.reject(&:empty?)
  end

  #: (String) -> String
  def unquoted(word)
    word.gsub(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/m) { $1 || $2&.gsub(/\\(.)/, '\1') || $3 }
  end
end
