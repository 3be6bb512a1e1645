# frozen_string_literal: true

require "pitwall/cli/recording/command_limit"
require "pitwall/cli/recording/page"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/recorded_command"
require "pitwall/doctor/proc_file"
require "pitwall/views"

module Pitwall
  module CLI
    # `pitwall boot -- CMD`: what a command loads until it has booted.
    class Boot < RecordedCommand
      include CommandLimit

      FORMATS = %w[text json markdown html].freeze
      VIEW = Views.named("boot")
      # Of --fail-if, with their units. "boot" is the wall time of the whole boot.
      METRICS = { "boot" => "ns", "cpu" => "ns", "gc" => "ns", "gc_runs" => "count", "features" => "count",
                  "load_path" => "count", "objects" => "count", "bytes" => "bytes", "rss" => "bytes",
                  "calls" => "count" }.freeze
      private_constant :FORMATS, :VIEW, :METRICS

      class << self
        #: () -> String
        def summary = "what a boot loads: time and memory of each file, what to do"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall boot -- bin/rails runner 1", "which files and gems does the boot wait for?"],
            ["pitwall boot --fail-if \"boot > 2s, features > 3000\" -- bin/rails runner 1", "a limit for CI"]
          ]
        end

        #: () -> Hash[String, Array[String]]
        def option_words = VIEW.option_words
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("How to record")
        parser.on("--calls", "count file-system calls, too: slower") { @options[:calls] = true }
        define_collecting_options(parser)
        parser.separator("What to show")
        VIEW.define_options(parser, @options)
        parser.on("--limit N", Integer, "rows in the tree") { |limit| @options[:limit] = limit }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.separator("")
        define_limit(parser, METRICS, "\"boot > 2s, features > 3000\"")
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command) = limited(super)

      private

      def check_report_options
        return unless @options[:heaviest] == :calls && !@options[:calls]

        raise UsageError, "--heaviest calls: record them: add --calls"
      end

      def target_options
        { mode: "none", "boot.on": 1, **calls, **super }
      end

      def calls
        return {} unless @options[:calls]

        { "syscalls.stacks": 0, "syscalls.io": 0,
          "syscalls.filters": Pitwall::Doctor::ProcFile.status("Seccomp_filters").to_i }
      end

      def render(recording, _difference, width:, palette:)
        found = Record.read(recording)
        judge_segments(found.segments)
        subject = Views::Subject.new(
          Views::Asked.new(@options.slice(:format, :limit, :heaviest)), found.segments, found.warnings,
          files: [recording], typed: Project.typed([recording]),
          application: Project.application([recording], command: @command),
          screen: Views::Screen.new(width: width, palette: palette)
        )
        @options[:format] == "html" ? page(subject) : VIEW.draw(subject)
      end

      def page(subject)
        VIEW.check(subject)
        Page.render(subject.chosen, subject.warnings, patterns: subject.application.patterns,
                    findings: subject.findings_of_process, origin: subject.application.origin)
      end

      # A gate is judged even where no report is wanted.
      def show(recording, summary, difference)
        judge_segments(Record.read(recording).segments) if @options[:quiet] && !@options[:out]
        super
      end

      # There are no samples for other programs to show.
      def closing(summary, difference) = summary.closing(difference, elsewhere: false)

      def judge_segments(segments)
        boot = Analyse::Boot.new(segments, origin: Project.origin)
        judge { |metric| value(boot, metric) } if boot.any?
      end

      def value(boot, metric)
        value = boot.figures.fetch(metric == "boot" ? :wall : metric.to_sym)
        @unknown = "file-system calls were not recorded: add --calls" if value.nil?
        value || false
      end
    end
  end
end
