# frozen_string_literal: true

require "pitwall/cli/recording/command_limit"
require "pitwall/cli/recording/recorded_command"
require "pitwall/cli/recording/page"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/syscall_sources"
require "pitwall/launch/strace"
require "pitwall/doctor/proc_file"
require "pitwall/native"
require "pitwall/record/syscall_log"
require "pitwall/show/syscalls/words"
require "pitwall/views"

module Pitwall
  module CLI
    # `pitwall syscalls -- CMD`: every file-system call of a command's Ruby threads, with the Ruby lines that make them.
    class SyscallsCommand < RecordedCommand
      include CommandLimit

      FORMATS = %w[text json markdown html].freeze
      # Of --fail-if, with their units.
      METRICS = { "calls" => "count", "failed" => "count", "time" => "ns" }.freeze
      VIEW = Views.named("syscalls")
      private_constant :FORMATS, :METRICS, :VIEW

      class << self
        #: () -> String
        def verb = "syscalls"

        #: () -> String
        def summary = "which file-system calls, in what patterns, what to do"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("How to record")
        parser.on("--io", "also reads and writes, and network calls") { @options[:io] = true }
        parser.on("--count", "totals only: no paths, no lines") { @options[:count] = true }
        parser.on("--no-stacks", "without Ruby lines") { @options[:stacks] = false }
        parser.on("--strace", "through strace: slow and without Ruby lines, but of every program that the command " \
                              "starts") do
          @options[:strace] = true
        end
        parser.on("--start", "also Ruby's own start, before Pitwall is loaded: counted through strace") do
          @options[:start] = true
        end
        define_collecting_options(parser)
        parser.separator("What to show")
        SyscallSources.define_options(parser, @options)
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.separator("")
        define_limit(parser, METRICS, "calls > 20k, failed > 5k, time > 1s")
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command)
        outside = command.any? && why_from_outside
        limited(outside ? run_under_strace(command, outside) : super)
      end

      private

      def target_options
        { mode: "none", "syscalls.stacks": @options.fetch(:stacks, true) ? 1 : 0, "syscalls.io": @options[:io] ? 1 : 0,
          "syscalls.count": @options[:count] ? 1 : 0, "syscalls.start": @options[:start] ? 1 : 0,
          "syscalls.filters": Pitwall::Doctor::ProcFile.status("Seccomp_filters").to_i, **super }
      end

      def check_report_options
        raise UsageError, "--count has totals only: leave out --patterns" if @options[:count] && @options[:patterns]

        super
      end

      # @return [String, nil] why the calls are seen from outside; nil: they are seen from inside
      # @raise [CannotMeasure] they can't be seen at all
      def why_from_outside
        refusal = refusal_from_inside
        return unless @options[:strace] || @options[:start] || refusal
        unless Pitwall::Launch::Strace.path
          what = "--#{@options[:strace] ? "strace" : "start"}: strace is needed"
          what = "system calls can't be seen from inside: #{refusal}; from outside strace could" if refusal
          raise CannotMeasure, "#{what}, but it is not installed (Debian: apt install strace)"
        end

        return "--strace" if @options[:strace]

        refusal
      end

      def refusal_from_inside
        Pitwall.load_native!
        Native.syscall_dispatch
      end

      def run_under_strace(command, why)
        given = { "--count" => @options[:count], "--no-stacks" => @options[:stacks] == false,
                  "--control" => @options[:control], "--start" => @options[:start] }
        idle = given.find { |_, value| value }
        raise UsageError, "#{idle[0]} is not for strace (#{why}): leave it out" if idle

        check_report_options
        destination = Pitwall::Launch::Destination.new(command, file: @options[:record])
        log = destination.recording.sub(/(\.pit)?\z/, ".strace")
        destination.discard
        unless @options[:strace] || @options[:quiet]
          @err.puts("pitwall: #{why}: watching from outside, by strace; expect it to be many times slower, and " \
                    "without Ruby lines")
        end
        finished = Pitwall::Launch::Strace.new(command, log: log, io: @options.fetch(:io, false)).call
        conclude_log(log)
        Ending.of(finished.status)
      end

      # Whatever goes wrong from here on is told, and doesn't change the command's own status.
      def conclude_log(log)
        found = SyscallSources.of_log(log, @options[:patterns])
        report = found.report
        figures = { "calls" => report.calls, "failed" => report.failed, "time" => report.ns.to_i }
        judge { |metric| figures.fetch(metric) }
        return if @options[:quiet] && !@options[:out]

        publish do |width, palette|
          Views::SyscallReport.draw([found], @options[:format], limit: @options[:limit], base: Dir.pwd, width: width,
                                                                palette: palette)
        end
        unless @options[:quiet] || (@options[:out].nil? && @options[:format] == "json")
          @err.puts("", "The log is #{log}")
        end
      rescue Pitwall::Error => error
        @err.puts("pitwall: #{CLI.message(error)}")
      rescue Errno::EPIPE
        nil
      end

      def publish
        stream = @options[:out] == "-" ? @out : @err
        stream = nil if @options[:out] && @options[:out] != "-"
        text = yield(width(stream), palette(stream))
        case @options[:out]
        when nil then @err.puts(text)
        when "-" then @out.puts(text)
        else OutputFile.write(@options[:out]) { |out| out.puts(text) }
        end
      end

      def render(recording, difference, width:, palette:)
        found = Record.read(recording)
        judge_segments(found.segments)
        application = Project.application([recording], patterns: @options[:patterns])
        if @options[:format] == "html" && found.segments.any?(&:syscalls?)
          return Page.of_syscalls(found.segments, found.warnings, patterns: application.patterns,
                                                                  difference: difference)
        end

        asked = Views::Asked.new(@options.slice(:format, :limit))
        screen = Views::Screen.new(width: width, palette: palette)
        VIEW.draw(Views::Subject.new(
                    asked, found.segments, found.warnings, files: [recording], typed: Project.typed([recording]),
                    application: application, screen: screen
                  ))
      end

      # A gate is judged even where no report is wanted.
      def show(recording, summary, difference)
        judge_segments(Record.read(recording).segments) if @options[:quiet] && !@options[:out]
        super
      end

      # Text and Markdown say themselves what is not seen.
      def closing(summary, difference)
        unseen = Show::SyscallsWords.unseen("recording") if %w[json html].include?(@options[:format])
        [*summary.closing(difference, elsewhere: false), *start_seen, *unseen]
      end

      def launch(command, destination)
        return super unless @options[:start]

        @start_log = destination.recording.sub(/(\.pit)?\z/, "-start.strace")
        super(Pitwall::Launch::Strace.new(command, log: @start_log).words_for_start, destination)
      rescue Pitwall::Error
        destination.discard
        raise
      end

      # What came before Pitwall, less what loading Pitwall itself took.
      def start_seen
        return [] unless @start_log

        calls = failed = 0
        own = File.expand_path("../../..", __dir__)
        Record::SyscallLog.open(@start_log).each do |call|
          next if call.path&.start_with?(own)

          calls += 1
          failed += 1 if call.errno&.positive?
        end
        counted = "#{Show::Units.count(calls)} calls (#{Show::Units.count(failed)} failed)"
        command = "pitwall syscalls #{@start_log.delete_prefix("#{Dir.pwd}/")}"
        ["Ruby's own start, by strace: #{counted}; in patterns: #{command}"]
      rescue Pitwall::Error => error
        ["Ruby's own start: #{CLI.message(error)}"]
      end

      def judge_segments(segments)
        traced = segments.select(&:syscalls?)
        return if traced.empty?

        sums = traced.flat_map { |segment| segment.syscall_totals.values }.transpose.map(&:sum)
        judge { |metric| sums.fetch(METRICS.keys.index(metric), 0) }
      end
    end
  end
end
