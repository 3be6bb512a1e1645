# frozen_string_literal: true

require "pitwall/cli/recording/recorded_command"
require "pitwall/cli/recording/view_report"
require "pitwall/cli/verbs/boot_cache"
require "pitwall/doctor/proc_file"

module Pitwall
  module CLI
    # `pitwall boot -- CMD`: what a command loads until it has booted.
    class Boot < RecordedCommand
      include ViewReport

      VIEW = Views.named("boot")
      # Of --fail-if, with their units. "boot" is the wall time of the whole boot.
      METRICS = { "boot" => "ns", "cpu" => "ns", "gc" => "ns", "gc_runs" => "count", "features" => "count",
                  "load_path" => "count", "objects" => "count", "bytes" => "bytes", "rss" => "bytes",
                  "calls" => "count", "cache_hits" => "count", "cache_misses" => "count" }.freeze
      UNKNOWN = { "calls" => "file-system calls were not recorded: add --calls",
                  "cache_hits" => "no cache of compiled code was asked",
                  "cache_misses" => "no cache of compiled code was asked" }.freeze
      private_constant :VIEW, :METRICS, :UNKNOWN

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

        #: () -> Array[Class]
        def other_forms = [BootCache]
      end

      # `boot cache …` is a form of its own.
      #: (Array[String]) -> (Integer | Ending)
      def call(argv)
        argv.first == "cache" ? BootCache.new(out: @out, err: @err).call(argv.drop(1)) : super
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("`pitwall boot cache --help`: what pitwall/fastboot keeps for faster boots")
        parser.separator("")
        parser.separator("How to record")
        parser.on("--calls", "count file-system calls, too: slower") { @options[:calls] = true }
        parser.on("--used", "find files and gems that are never used afterwards: slower") { @options[:used] = true }
        define_collecting_options(parser)
        parser.separator("What to show")
        VIEW.define_options(parser, @options)
        define_report_options(parser, rows: "rows in the tree")
        define_limit(parser, METRICS, "\"boot > 2s, features > 3000\"")
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command) = limited(super)

      private

      def check_report_options
        unrecorded = @options[:heaviest] == :calls && !@options[:calls]
        raise UsageError, "--heaviest calls: record them: add --calls" if unrecorded

        super
      end

      def target_options
        { mode: "none", "boot.on": 1, **calls, **used, **super }
      end

      def used = @options[:used] ? { "boot.used": 1 } : {}

      def calls
        return {} unless @options[:calls]

        { "syscalls.stacks": 0, "syscalls.io": 0,
          "syscalls.filters": Pitwall::Doctor::ProcFile.status("Seccomp_filters").to_i }
      end

      def view_of(_segments) = VIEW

      def judge_segments(segments)
        boot = Analyse::Boot.new(segments, origin: Project.origin)
        judge { |metric| value(boot, metric) } if boot.any?
      end

      def value(boot, metric)
        value = boot.figures.fetch(metric == "boot" ? :wall : metric.to_sym)
        @unknown = UNKNOWN.fetch(metric) if value.nil?
        value || false
      end
    end
  end
end
