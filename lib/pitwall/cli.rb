# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/version"
require "pitwall/cli/support/advice"
require "pitwall/cli/support/ending"
require "pitwall/show/terminal/text"

module Pitwall
  # The command `pitwall`: runs the verb's class, and turns every error into one line and an exit status.
  module CLI
    # Verb → class below CLI, in the order of `--help`. A verb's file is loaded when the verb is used.
    COMMANDS = {
      "bench" => :Bench,
      "compare" => :Compare,
      "prove" => :Prove,
      "history" => :History,
      "profile" => :Profile,
      "allocations" => :Allocations,
      "trace" => :Trace,
      "syscalls" => :Syscalls,
      "caches" => :Caches,
      "boot" => :Boot,
      "report" => :Report,
      "view" => :View,
      "export" => :Export,
      "import" => :Import,
      "doctor" => :Doctor,
      "completion" => :Completion
    }.freeze

    # The exit statuses and their meanings, for `--help` and the manual.
    STATUSES = {
      Status::OK => "fine",
      Status::WORSE => "slower, or a limit was exceeded (compare, --fail-if)",
      Status::USAGE => "usage: an unknown option, a missing file",
      Status::UNDECIDED => "undecided (by verbs that compare)",
      Status::CANNOT_MEASURE => "nothing recorded, or cannot measure or judge here (try pitwall doctor)",
      Status::BAD_RECORDING => "bad or unreadable recording"
    }.freeze

    class << self
      # Runs one command line. Never calls `exit`. Writes messages only to `out` and `err`.
      # @return the exit status; 128 + N means that the process should die of signal N, see {ending}
      #: (Array[String], ?out: IO, ?err: IO) -> Integer
      def run(argv, out: $stdout, err: $stderr) = ending(argv, out: out, err: err).status

      # Runs one command line and returns how the process should end. When the measured command is killed by a signal,
      # exe/pitwall dies of the same signal ({Ending#leave}), so that the parent process sees the signal.
      #: (Array[String], ?out: IO, ?err: IO) -> Ending
      def ending(argv, out: $stdout, err: $stderr)
        ending = Ending.from(dispatch(argv, out, err))
        out.flush
        ending
      rescue Pitwall::Error => error
        complain(err, message(error), error)
        Ending.new(error.status)
      rescue Interrupt
        Ending.killed_by("INT")
      rescue SignalException => error
        Ending.killed_by(error.signm)
      rescue Errno::EPIPE
        # The reader closed the pipe, as in `pitwall report x.pit | head`.
        Ending.new(ending ? ending.status : Status::OK)
      rescue SystemCallError => error
        refusal = output_refusal(error, out) or return ending_of_bug(err, error)

        complain(err, refusal, error)
        Ending.new(Status::USAGE)
      rescue StandardError, ScriptError => error
        # When Ctrl-C comes while RubyGems loads a file, RubyGems raises an error of its own, caused by the Interrupt.
        return Ending.killed_by("INT") if error.cause.is_a?(Interrupt)

        ending_of_bug(err, error)
      end

      # One line about an error while writing to a standard stream, e.g. on a full disk; nil for any other error.
      # @api private
      #: (SystemCallError, IO) -> String?
      def output_refusal(error, out)
        name = out.inspect[/\A#<\w+:(<\w+>)>\z/, 1] # "#<IO:<STDOUT>>"
        if name && error.message.end_with?(" - #{name}")
          "cannot write standard output: #{SystemCallError.new(error.errno).message}"
        end
      end

      # Prints one line about an unexpected error.
      # @api private
      #: (IO, Exception) -> void
      def report_bug(err, error)
        complain(err, outside_of_bundle(error) ||
                      "#{error.class}: #{first_line(error)}; this is a bug: " \
                      "please report it with what PITWALL_DEBUG=1 adds", error)
      end

      # One line if a gem of the command's own is missing because Bundler allows only those of a Gemfile; else nil.
      # @api private
      #: (Exception) -> String?
      def outside_of_bundle(error)
        return unless error.is_a?(LoadError) && error.path && defined?(::Bundler::SharedHelpers)

        "the bundle of #{ENV["BUNDLE_GEMFILE"] || "this folder"} lacks #{error.path}, which pitwall needs: " \
          "run it without `bundle exec` and without -rbundler/setup in RUBYOPT"
      end

      # The class of a verb.
      # Raises UsageError when there is none.
      #: (String) -> singleton(Command)
      def command(verb)
        name = COMMANDS[verb] or raise UsageError, unknown_verb(verb)
        require "pitwall/cli/verbs/#{verb}"
        const_get(name)
      end

      private

      def ending_of_bug(err, error)
        report_bug(err, error)
        Ending.new(Status::CANNOT_MEASURE)
      end

      def dispatch(argv, out, err)
        verb, *arguments = argv
        verb, arguments = arguments.first, ["--help"] if verb == "help"
        case verb
        when nil, "-h", "--help"
          (argv.empty? ? err : out).puts(help)
          argv.empty? ? Status::USAGE : Status::OK
        when "-v", "--version"
          out.puts("pitwall #{VERSION}")
          Status::OK
        else
          command(verb).new(out: out, err: err).call(arguments)
        end
      end

      def help
        verbs = COMMANDS.keys.to_h { |verb| [verb, command(verb).summary] }
        widest = verbs.keys.map(&:size).max
        lines = ["pitwall #{VERSION}: a performance lab for Ruby", "", "usage: pitwall VERB [options]", ""]
        lines.concat(verbs.map { |verb, summary| "  #{verb.ljust(widest)}  #{summary}" })
        lines.push("", "`pitwall VERB --help` explains a verb; `pitwall --version` names this one.", "", "Exit status")
        lines.push("  With `-- CMD` of verbs that record the command's own wins, if not 0:",
                   "  127 not found, 126 not executable; killed by a signal, pitwall dies of the",
                   "  same. Otherwise:")
        lines.concat(STATUSES.map { |status, meaning| "  #{status}  #{meaning}" })
        lines
      end

      def unknown_verb(verb)
        return "unknown option #{verb}; `pitwall --help` lists the verbs" if verb.start_with?("-")

        "unknown verb #{verb}#{guess(verb, COMMANDS.keys)}; `pitwall --help` lists them"
      end

      # " (did you mean …?)" with the most similar word. nil if none is similar, or without the gem did_you_mean, which
      # --disable-did_you_mean switches off.
      def guess(word, words)
        return unless defined?(DidYouMean::SpellChecker)

        similar = DidYouMean::SpellChecker.new(dictionary: words).correct(word).first
        " (did you mean #{similar}?)" if similar
      end

      def complain(err, message, error)
        err.puts("pitwall: #{Show::Text.line(message)}")
        err.puts(error.full_message(highlight: false)) unless ENV["PITWALL_DEBUG"].to_s.empty?
      rescue SystemCallError
        # Standard error is closed, or its disk is full. The exit status still reports the error.
      end

      # The message's first line, at most 300 characters. The message of a NoMethodError contains its whole receiver.
      def first_line(error) = error.message.to_s.lines.first.to_s.chomp.slice(0, 300)
    end

    public_class_method :guess
  end
end
