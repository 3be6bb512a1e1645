# frozen_string_literal: true

require "pitwall/cli/support/command"
require "pitwall/duration"
require "pitwall/cli/support/output_file"
require "pitwall/cli/recording/profile_summary"
require "pitwall/launch"
require "pitwall/launch/control"
require "pitwall/launch/destination"
require "pitwall/launch/parts"
require "pitwall/launch/target_environment"
require "pitwall/record"
require "pitwall/show/terminal/text"

module Pitwall
  module CLI
    # A verb that takes `-- CMD`: runs it with collectors in each of its Ruby processes, joins what they recorded, and
    # reports.
    #
    # The command is the user's: its streams, signals and exit status pass through, and Pitwall speaks only after it has
    # ended. A verb declares its options around {#define_collecting_options}, says in {#target_options} what to collect,
    # and in {#report_options} how `pitwall report` is to show it.
    class RecordedCommand < Command
      FLUSH_NS = 1_000_000_000 # what a killed process can lose
      TIMES_NS = (1_000_000..1_000_000_000_000_000).freeze # of --delay and --duration
      private_constant :FLUSH_NS, :TIMES_NS

      class << self
        #: () -> String
        def usage = "[options] -- CMD…"

        #: () -> bool
        def runs_command? = true
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command)
        raise UsageError, "no command: pitwall #{self.class.verb} -- CMD…" if command.empty?

        check_report_options
        @command = command
        control = Pitwall::Launch::Control.new(command) if @options[:control]
        destination = Pitwall::Launch::Destination.new(command, file: @options[:record])
        ending = prepared(command, destination)
        return ending if ending

        finished = launch(command, destination)
        conclude(destination, finished, control)
        @unrecorded && finished.status.success? ? Ending.new(Status::CANNOT_MEASURE) : Ending.of(finished.status)
      end

      private

      # What a verb has to do before the command runs under its collectors, once it is known that the recording can be
      # written.
      # @return [Ending, nil] how to end at once instead
      def prepare(_command) = nil

      def prepared(command, destination)
        done = false
        ending = prepare(command)
        done = ending.nil?
        ending
      ensure
        destination.discard unless done
      end

      # What can be said of any recording, and where to.
      def define_collecting_options(parser)
        parser.on("--keep-argv", "record the values of the command's arguments as well") { @options[:keep_argv] = true }
        parser.on("--control", "run it again without Pitwall (output discarded) and show the difference") do
          @options[:control] = true
        end
        parser.separator("")
        parser.separator("Where to")
        parser.on("--record FILE.pit", "the recording (default: a dated file in .pitwall/)") do |file|
          @options[:record] = file
        end
        parser.on("--out FILE", "the report; - is standard output, once the command has ended (default: standard " \
                                "error)") do |file|
          @options[:out] = file
        end
        parser.on("--quiet", "no report, unless --out asks for one; only problems are told") { @options[:quiet] = true }
        parser.separator("")
      end

      # Which part of the command's time is recorded.
      def define_times(parser)
        parser.on("--delay TIME", "record from so long after the command's start on (5s)") do |text|
          @options[:delay] = Duration.parse(text, name: "--delay", range: TIMES_NS)
        end
        parser.on("--duration TIME", "record for so long (30s); the command runs on to its own end") do |text|
          @options[:duration] = Duration.parse(text, name: "--duration", range: TIMES_NS)
        end
      end

      # The settings of Collect::Session by name; those of a collector as "collector.option".
      #: () -> Hash[Symbol, untyped]
      def target_options = { flush_ns: FLUSH_NS, keep_argv: @options[:keep_argv] ? 1 : 0 }

      # The format that shows most of it elsewhere, and a file's name for it.
      #: () -> [String, String]
      def export_hint = %w[speedscope profile.json]

      # Another profiler that records beside Pitwall (PerfBeside); nil: none.
      def beside(_destination) = nil

      def launch(command, destination)
        @beside = beside(destination)
        @beside&.start(paused: !@options[:delay].nil?)
        window = times
        @beside&.keep(window)
        options = { **target_options, **window }
        environment = Pitwall::Launch::TargetEnvironment.new(parts: destination.parts, options: options)
        telling_of_the_end { Pitwall::Launch.new(command, env: environment.to_h).call }
      rescue Pitwall::Error
        @beside&.discard
        destination.discard
        raise
      end

      # When the recording begins and ends, by the clock that all processes share. The command starts now.
      def times
        delay, duration = @options.values_at(:delay, :duration)
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        { begin_at_ns: delay && (now + delay), end_at_ns: duration && (now + delay.to_i + duration) }.compact
      end

      # The command may run on for long: one line says that it is recorded no more.
      def telling_of_the_end
        if @options[:duration].nil? || @options[:quiet] || (@options[:out].nil? && @options[:format] == "json")
          return yield
        end

        begin
          teller = Thread.new do
            sleep (@options[:delay].to_i + @options[:duration]) / 1e9
            @err.puts("pitwall: recorded for #{Duration.format(@options[:duration])}; the report comes when the " \
                      "command has ended")
          rescue SystemCallError, IOError
            nil # nobody listens on standard error any more
          end
          yield
        ensure
          teller&.kill&.join
        end
      end

      # Whatever goes wrong from here on is told, and doesn't change the command's own status.
      def conclude(destination, finished, control)
        parts = Pitwall::Launch::Parts.new(destination.parts)
        messages = parts.messages + (@beside&.join(parts) || [])
        merged = parts.merge_into(destination.recording, first: finished.pid)
        summary = ProfileSummary.new(destination: destination, finished: finished, merged: merged, messages: messages,
                                     export: export_hint, delay: @options[:delay], duration: @options[:duration])
        destination.tidy
        @err.puts((summary.problems + unwritten(destination.recording, merged)).map { |line| Show::Text.line(line) })
        @unrecorded = !merged.any? && merged.living.empty?
        return unless merged.any?
        return tell_of_device(destination.recording) unless File.file?(destination.recording)

        difference = control&.compare(finished)
        show(destination.recording, summary, difference)
      rescue Pitwall::Error => error
        @err.puts("pitwall: #{Show::Text.line(CLI.message(error))}")
      rescue Interrupt
        @err.puts("pitwall: interrupted; the recording is #{destination.recording}")
      rescue Errno::EPIPE
        nil # nobody listens on standard error any more
      rescue StandardError, ScriptError => error
        CLI.report_bug(@err, error)
      end

      # What went into a device or a pipe can't be read back.
      def tell_of_device(recording)
        return if @options[:quiet] && !@options[:out]

        @err.puts("pitwall: no report: #{recording} is no file, and what was recorded can't be read back from it; " \
                  "name one with --record FILE.pit")
      end

      def show(recording, summary, difference)
        return if @options[:quiet] && !@options[:out]

        text = report(recording, difference)
        case @options[:out]
        when nil then @err.puts(text)
        when "-" then put_out(text)
        else OutputFile.write(@options[:out]) { |out| out.write(text) }
        end
        # A program that reads the report from standard error gets the report only.
        unless @options[:quiet] || (@options[:out].nil? && @options[:format] == "json")
          @err.puts(after_report(closing(summary, difference)).flat_map { |line| wrapped(line) })
        end
      rescue Errno::EPIPE
        nil # the reader has gone; the command's status still counts
      rescue UsageError => error
        raise UsageError, "#{CLI.message(error)}; the recording is #{recording}"
      end

      # At once, so that what goes wrong is known here and the command's status stays.
      def put_out(text)
        @out.sync = true
        @out.puts(text)
      rescue SystemCallError => error
        refusal = CLI.output_refusal(error, @out) or raise

        raise UsageError, refusal
      end

      # A report that goes to standard error says it itself.
      def unwritten(recording, merged)
        return [] unless (@options[:quiet] || @options[:out]) && merged.any? && File.file?(recording)

        warnings = Record.read(recording).warnings.select { |warning| warning.code == :unwritten }
        warnings.map { |warning| "pitwall: #{warning.message}" }
      rescue BadRecording
        [] # the report says so
      end

      # Of a report that went to a file nothing else tells.
      def after_report(lines)
        file = @options[:out]
        return lines if file.nil? || file == "-"

        ["The #{@options[:format] == "html" ? "page" : "report"} is #{file}", *lines.drop_while(&:empty?)]
      end

      # Commands are to be copied, and stay on one line.
      def wrapped(line) = line.empty? || line.start_with?("  ") ? [line] : Show::Text.wrap(line, width(@err))

      # What is said below the report.
      def closing(summary, difference) = summary.closing(difference)

      def report(recording, difference)
        stream = @options[:out] == "-" ? @out : @err
        stream = nil if @options[:out] && @options[:out] != "-"
        render(recording, difference, width: width(stream), palette: palette(stream))
      end

      # The report as a string.
      def render(recording, difference, width:, palette:)
        CLI.command("report").render(recording, **report_options, command: @command, difference: difference,
                                                                  width: width, palette: palette)
      end

      def check_page
        odd = %i[limit apart idle by sort retained].find { |name| @options[name] }
        raise UsageError, "--format html: the page has all rows and orders: leave out --#{odd}" if odd
        raise UsageError, "--format html: a page is a file: add --out FILE.html" if @options[:out].nil?
      end

      # Before the command starts, like everything that can be known to fail.
      def check_report_options
        check_limit
        file = @options[:out]
        check_page if @options[:format] == "html"
        return if file.nil? || file == "-"

        OutputFile.check(file, [@options[:record]].compact)
        OutputFile.probe(file)
      end
    end
  end
end
