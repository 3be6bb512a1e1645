# frozen_string_literal: true

require "optparse"
require "pastel"

module Pitwall
  module CLI
    # What every verb has in common: options, help, the two streams, the terminal.
    #
    # A verb says what it is with {verb}, {summary} and {usage}, declares its options in {#define_options} (they
    # end up in `@options`), and does its work in {#run}.
    class Command
      PIPE_WIDTH = 100 # columns where the output is not a terminal: fits mails and pull requests
      TERMINAL_WIDTH = 80 # columns of a terminal that doesn't tell
      OPTION_WIDTH = 26 # columns of an option in --help
      MOST_ROWS = 1_000_000_000

      class << self
        # What stands after `pitwall`.
        #: () -> String
        def verb = name.split("::").last.downcase

        # One line for `pitwall --help`.
        #: () -> String
        def summary = raise(NotImplementedError, "#{self}.summary")

        # Two commands with which its help ends: [what to type, what that is for].
        #: () -> Array[[String, String]]
        def examples = []

        # What stands after the verb: `[options] FILE`.
        #: () -> String
        def usage = "[options]"

        # Whether the verb's arguments are a command with options of its own (`-- CMD`), which are not the verb's.
        #: () -> bool
        def runs_command? = false

        # What can stand where its arguments do, if these are words; for completion.
        #: () -> Array[String]?
        def argument_words = nil

        # Commands that take the verb's place for some arguments; their options are completed as well.
        #: () -> Array[singleton(Command)]
        def other_forms = []

        # The words that an option takes where its parser doesn't know them: {"--view" => ["flat", …]}; for completion.
        #: () -> Hash[String, Array[String]]
        def option_words = {}
      end

      #: (out: IO, err: IO) -> void
      def initialize(out:, err:)
        @out = out
        @err = err
        @options = {}
      end

      # Parses the arguments and runs the verb.
      # Raises UsageError for options it doesn't know and values out of range.
      #: (Array[String]) -> (Integer | Ending)
      def call(argv)
        args = parse(argv)
        return help if @options.delete(:help)

        run(args)
      end

      # Declares the verb's options.
      #: (OptionParser) -> void
      def define_options(parser); end

      # Its options, as the parser has them.
      #: () -> Array[OptionParser::Switch]
      def switches = parser.top.list.grep(OptionParser::Switch)

      # Does the verb's work.
      #: (Array[String]) -> (Integer | Ending)
      def run(args) = raise(NotImplementedError, "#{self.class}#run")

      private

      def parse(argv)
        # Parsed up to `--` only: with require_exact, the OptionParser of Ruby 3.1 fails at it, and at `--name=value`.
        cut = argv.index("--") || argv.size
        # OptionParser matches every word, a name of a file that is no valid text as well.
        options, rest = split_values(argv[0...cut].map { |word| word.valid_encoding? ? word : word.b }), argv[cut..]
        return parser.permute(options) + rest.drop(1) unless self.class.runs_command?

        # Without `--` the first word is the command's, and all after it.
        command = parser.order(options)
        command.empty? ? rest.drop(1) : command + rest
      rescue OptionParser::ParseError => error
        raise UsageError, describe(error)
      end

      # @raise [UsageError] --limit asks for no row, or for more than there can be
      def check_limit
        limit = @options[:limit] or return
        raise UsageError, "--limit #{limit}: must be 1 or more" if limit < 1
        raise UsageError, "--limit #{limit}: must be #{MOST_ROWS} or less" if limit > MOST_ROWS
      end

      # `--limit=3` → `--limit 3`, up to where a command begins.
      def split_values(words)
        words = words.dup
        split = []
        until words.empty?
          word = words.shift
          return split + [word] + words if self.class.runs_command? && !word.start_with?("-")

          _, name, value = *word.match(/\A(--[^=]+)(?:=(.*))?\z/m)
          takes_value = name && parser.top.long[name.delete_prefix("--")]&.arg
          takes_value ? split.push(name, *(value || words.shift)) : split << word
        end
        split
      end

      def parser
        @parser ||= OptionParser.new(nil, OPTION_WIDTH) do |parser|
          parser.banner = "usage: pitwall #{self.class.verb} #{self.class.usage}"
          parser.separator("")
          parser.separator(self.class.summary)
          parser.separator("")
          parser.require_exact = true # an abbreviation would stop working with the next option that begins so
          define_options(parser)
          parser.separator("")
          parser.on("-h", "--help", "this text") { @options[:help] = true }
          next if self.class.examples.empty?

          parser.separator("")
          self.class.examples.each { |command, meaning| parser.separator("  # #{meaning}\n  #{command}") }
        end
      end

      def help
        columns = terminal?(@out) ? width : TERMINAL_WIDTH
        @out.puts(parser.help.lines(chomp: true).flat_map { |line| fold(line, columns) })
        Status::OK
      end

      # Breaks a line of help; what an option does goes on below where it began.
      def fold(line, columns)
        indent = line.start_with?("    ") ? OPTION_WIDTH + 5 : 2
        lines = []
        while line.size > columns && (cut = line.rindex(" ", columns)) && cut > indent
          lines << line[0, cut].rstrip
          line = (" " * indent) + line[cut + 1..]
        end
        lines << line
      end

      # OptionParser's own messages take several lines and guess among its internal options as well.
      def describe(error)
        option = error.args.first.to_s
        more = "`pitwall #{self.class.verb} --help` lists the options"
        case error
        when OptionParser::InvalidOption
          name = option[/\A--?[^=]*/]
          guess = CLI.closest(name, long_options)
          "unknown option #{name}#{" (did you mean #{guess}?)" if guess}; #{more}"
        when OptionParser::InvalidArgument then "#{error.args.join(" ")}: #{wanted(option[/\A[^=]*/])}"
        when OptionParser::MissingArgument then "#{option} needs a value; #{more}"
        else "#{error.reason}: #{error.args.join(" ")}; #{more}"
        end
      end

      # What an option takes instead: its words, or a number.
      def wanted(option)
        words = parser.top.long[option.delete_prefix("--")]&.pattern
        words.respond_to?(:keys) ? "it takes #{words.keys.join(", ")}" : "it takes a number"
      end

      def long_options = parser.summarize.join.scan(/(?<![\w-])--([a-z][\w-]*)/).flatten.map { |name| "--#{name}" }.uniq

      # Columns the stream has room for.
      #: (?IO) -> Integer
      def width(io = @out)
        return PIPE_WIDTH unless terminal?(io)

        require "io/console"
        columns = io.winsize[1]
        columns.positive? ? columns : TERMINAL_WIDTH
      rescue SystemCallError, NoMethodError
        TERMINAL_WIDTH
      end

      # Colours for the stream; plain text where it is no terminal, or the user wants none (https://no-color.org).
      #: (?IO) -> Pastel
      def palette(io = @out) = Pastel.new(enabled: terminal?(io) && ENV["NO_COLOR"].to_s.empty? && ENV["TERM"] != "dumb")

      def terminal?(io) = io.respond_to?(:tty?) && io.tty?
    end
  end
end
