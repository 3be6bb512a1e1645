# frozen_string_literal: true

require "optparse"
require "pastel"

module Pitwall
  module CLI
    # The superclass of all verbs: options, help, the two streams, the terminal.
    #
    # A verb defines its name and texts in {verb}, {summary} and {usage}. {#define_options} declares its options, whose
    # values are stored in `@options`. {#run} does the work.
    class Command
      PIPE_WIDTH = 100 # columns where the output is not a terminal: fits mails and pull requests
      TERMINAL_WIDTH = 80 # columns of a terminal whose width is unknown
      OPTION_WIDTH = 26 # columns of an option in --help
      MAX_ROWS = 1_000_000_000 # upper limit of --limit

      class << self
        # The verb: the first word after `pitwall`, e.g. "bench".
        #: () -> String
        def verb = name.split("::").last.downcase

        # One line for `pitwall --help`.
        #: () -> String
        def summary = raise(NotImplementedError, "#{self}.summary")

        # Example commands at the end of the verb's help: [command, its purpose].
        #: () -> Array[[String, String]]
        def examples = []

        # The usage line after the verb, e.g. "[options] FILE".
        #: () -> String
        def usage = "[options]"

        # Whether the verb's arguments are a command (`-- CMD`). The command's own options are not the verb's options.
        #: () -> bool
        def runs_command? = false

        # For completion: the words that the verb takes as arguments; nil where it takes other arguments, e.g. files.
        #: () -> Array[String]?
        def argument_words = nil

        # For completion: other Command classes that run this verb for some arguments. Their options are completed too.
        #: () -> Array[singleton(Command)]
        def other_forms = []

        # For completion: words of options whose parser doesn't list them, e.g. {"--view" => ["flat", …]}.
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
      # Raises UsageError for unknown options and for values out of range.
      #: (Array[String]) -> (Integer | Ending)
      def call(argv)
        args = parse(argv)
        return help if @options.delete(:help)

        run(args)
      end

      # Declares the verb's options.
      #: (OptionParser) -> void
      def define_options(parser); end

      # The verb's options, as OptionParser stores them.
      #: () -> Array[OptionParser::Switch]
      def switches = parser.top.list.grep(OptionParser::Switch)

      # Does the verb's work.
      #: (Array[String]) -> (Integer | Ending)
      def run(args) = raise(NotImplementedError, "#{self.class}#run")

      private

      def parse(argv)
        # The parser gets only the words before `--`: with require_exact, Ruby 3.1's OptionParser fails at `--`
        # and at `--name=value`.
        cut = argv.index("--") || argv.size
        # A file name may be invalid text. OptionParser matches every word against patterns, which needs valid text.
        options, rest = split_values(argv[0...cut].map { |word| word.valid_encoding? ? word : word.b }), argv[cut..]
        return parser.permute(options) + rest.drop(1) unless self.class.runs_command?

        # Without `--` the first word that is not an option begins the command.
        command = parser.order(options)
        command.empty? ? rest.drop(1) : command + rest
      rescue OptionParser::ParseError => error
        raise UsageError, describe(error)
      end

      # @raise [UsageError] --limit is less than 1 or more than MAX_ROWS
      def check_limit
        limit = @options[:limit] or return
        raise UsageError, "--limit #{limit}: must be 1 or more" if limit < 1
        raise UsageError, "--limit #{limit}: must be #{MAX_ROWS} or less" if limit > MAX_ROWS
      end

      # Splits `--limit=3` into `--limit 3`, in all words before the command.
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
          # No abbreviated options: a new option with the same beginning would break them.
          parser.require_exact = true
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
        @out.puts(parser.help.lines(chomp: true).flat_map { |line| wrap_help(line, columns) })
        Status::OK
      end

      # Wraps a line of help. The text of an option is indented on every line.
      def wrap_help(line, columns)
        indent = line.start_with?("    ") ? OPTION_WIDTH + 5 : 2
        lines = []
        while line.size > columns && (cut = line.rindex(" ", columns)) && cut > indent
          lines << line[0, cut].rstrip
          line = (" " * indent) + line[cut + 1..]
        end
        lines << line
      end

      # One line about an error. OptionParser's own messages have several lines and suggest internal options too.
      def describe(error)
        option = error.args.first.to_s
        more = "`pitwall #{self.class.verb} --help` lists the options"
        case error
        when OptionParser::InvalidOption
          name = option[/\A--?[^=]*/]
          "unknown option #{name}#{CLI.guess(name, long_options)}; #{more}"
        when OptionParser::InvalidArgument then "#{error.args.join(" ")}: #{allowed_values(option[/\A[^=]*/])}"
        when OptionParser::MissingArgument then "#{option} needs a value; #{more}"
        else "#{error.reason}: #{error.args.join(" ")}; #{more}"
        end
      end

      # The values that an option takes: a list of words, or "a number".
      def allowed_values(option)
        words = parser.top.long[option.delete_prefix("--")]&.pattern
        words.respond_to?(:keys) ? "it takes #{words.keys.join(", ")}" : "it takes a number"
      end

      def long_options = parser.summarize.join.scan(/(?<![\w-])--([a-z][\w-]*)/).flatten.map { |name| "--#{name}" }.uniq

      # Width of the stream's terminal in columns; PIPE_WIDTH where the stream is no terminal.
      #: (?IO) -> Integer
      def width(io = @out)
        return PIPE_WIDTH unless terminal?(io)

        require "io/console"
        columns = io.winsize[1]
        columns.positive? ? columns : TERMINAL_WIDTH
      rescue SystemCallError, NoMethodError
        TERMINAL_WIDTH
      end

      # Colours for the stream. Plain text where it is no terminal, or where NO_COLOR is set (https://no-color.org).
      #: (?IO) -> Pastel
      def palette(io = @out)
        Pastel.new(enabled: terminal?(io) && ENV["NO_COLOR"].to_s.empty? && ENV["TERM"] != "dumb")
      end

      def terminal?(io) = io.respond_to?(:tty?) && io.tty?
    end
  end
end
