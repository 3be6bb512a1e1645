# frozen_string_literal: true

require "pitwall/cli/recording/one_in"
require "pitwall/duration"
require "pitwall/cli/recording/perf_beside"
require "pitwall/cli/recording/method_report"

module Pitwall
  module CLI
    # `pitwall profile -- CMD`: runs a command with the sampler in each of its Ruby processes and reports.
    class Profile < RecordedCommand
      include MethodReport

      INTERVAL_NS = (100_000..1_000_000_000).freeze
      MODES = %w[auto outside signal safepoint].freeze
      WEIGHTS = %w[wall cpu captures].freeze
      # Ignored by default, so that one which arrives after the recording, or after an exec, harms nobody.
      SIGNALS = %w[URG WINCH].freeze
      private_constant :INTERVAL_NS, :MODES, :WEIGHTS, :SIGNALS

      class << self
        #: () -> String
        def summary = "where time goes: every thread, Ruby and C, GC, waiting"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall profile -- bin/rails runner Report.new.build", "any command"],
            ["pitwall profile --interval 100us --only-mine -- bundle exec rspec", "the tests, finer, application only"]
          ]
        end

        #: () -> Hash[String, Array[String]]
        def option_words = { "--signal" => SIGNALS }
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("How to record")
        parser.on("--interval TIME", "between two samples of a running thread: 100us to 1s (1ms)") do |text|
          @options[:interval_ns] = interval(text)
        end
        parser.on("--mode MODE", MODES, "auto (default): outside with Ruby 3.2 and newer where a core is spare, " \
                                        "else signal; outside: a thread on another core reads stacks; " \
                                        "signal: each thread is interrupted; " \
                                        "safepoint: sees only where Ruby pauses") do |mode|
          @options[:mode] = mode
        end
        parser.on("--signal NAME", "the signal to sample with: #{SIGNALS.join(", ")} (URG)") do |name|
          @options[:signal] = signal(name)
        end
        parser.on("--native", "also record native frames: MRI's own functions, C extensions, libraries " \
                              "(in mode signal); report --native shows them") { @options[:native] = true }
        parser.on("--perf", "run perf beside, and put its native and kernel frames below Ruby's; " \
                            "report --native shows them") { @options[:perf] = true }
        parser.on("--allocations [1/N]", "also count objects by stack (by line, where stacks are not walked), " \
                                         "in bursts: one in so many (1/50); see --view allocations") do |text|
          @options[:one_in] = OneIn.parse(text || "1/50", name: "--allocations")
        end
        define_times(parser)
        define_collecting_options(parser)
        define_report_options(parser, WEIGHTS)
        parser.on("--idle", "count threads that waited for work all the time") { @options[:idle] = true }
      end

      private

      def target_options
        usual_mode = @options[:signal] ? "signal" : "auto"
        { interval_ns: @options.fetch(:interval_ns, 1_000_000), mode: @options.fetch(:mode, usual_mode),
          signal: @options.fetch(:signal, "URG"), **(@options[:native] ? { native: 1 } : {}),
          **(@options[:perf] ? { perf: 1 } : {}), **allocations, **super }
      end

      def beside(destination)
        return unless @options[:perf]

        PerfBeside.new(destination.parts, period_ns: @options.fetch(:interval_ns, 1_000_000), err: @err)
      end

      def report_options = super.merge(idle: @options.fetch(:idle, false))

      def allocations
        return {} unless @options[:one_in]

        { "allocations.bursts": 1, "allocations.stacks": 1, "allocations.one_in": @options[:one_in] }
      end

      # --signal is asked for with the mode that uses one.
      def check_report_options
        mode = @options[:mode]
        if @options[:signal] && %w[outside safepoint].include?(mode)
          raise UsageError, "--mode #{mode} uses no signal: leave out --signal"
        end
        if @options[:native] && %w[outside safepoint].include?(mode)
          raise UsageError, "--native needs --mode signal: each thread reads its own native stack"
        end

        super
      end

      def interval(text) = Duration.parse(text, name: "--interval", range: INTERVAL_NS)

      def signal(text)
        name = text.upcase.delete_prefix("SIG")
        return name if SIGNALS.include?(name)

        raise UsageError, "--signal #{text}: not a signal to sample with; it takes #{SIGNALS.join(" or ")}, or do " \
                          "without: --mode safepoint"
      end
    end
  end
end
