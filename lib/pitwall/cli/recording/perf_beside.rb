# frozen_string_literal: true

require "pitwall/joining"
require "pitwall/launch/perf"
require "pitwall/launch/perf_recording"
require "pitwall/show/terminal/text"

module Pitwall
  module CLI
    # `pitwall profile --perf`: perf records the command beside Pitwall, and its frames are put into the parts before
    # these become the recording. Whatever goes wrong with perf is one line, and the recording is as without it.
    class PerfBeside
      # @param folder [String] of the parts
      # @param period_ns [Integer] CPU time between two samples of perf
      # @param err [IO] for what has to be told before the command starts
      #: (String, period_ns: Integer, err: IO) -> void
      def initialize(folder, period_ns:, err:)
        @folder = folder
        @period_ns = period_ns
        @err = err
      end

      # @param paused [Boolean] whether recording begins later
      #: (paused: bool) -> void
      def start(paused:)
        perf = Launch::PerfRecording.new(@folder, period_ns: @period_ns)
        perf.start(paused: paused)
        @perf = perf
      rescue Launch::PerfRecording::Refused => error
        perf.remove
        @err.puts(Show::Text.line("pitwall: #{error.message}; recording goes on without --perf"))
      end

      # @param times [Hash] begin_at_ns, end_at_ns: the part of the command's time that is recorded
      #: (Hash[Symbol, Integer]) -> void
      def keep(times) = @perf&.keep(**times)

      # Ends perf after a command that could not be started.
      #: () -> void
      def discard
        @perf&.stop
        @perf&.remove
      end

      # Ends perf, and puts its frames into the parts.
      # @return [Array<String>] what went wrong
      #: (Launch::Parts) -> Array[String]
      def join(parts)
        return [] unless @perf

        problem = @perf.stop
        lines = joined(parts)
        lines.unshift("#{problem}: its frames are missing from then on") if problem
        lines
      rescue Interrupt
        ["interrupted: perf's frames are missing"]
      rescue StandardError => error
        CLI.report_bug(@err, error) # the recording is there all the same
        []
      ensure
        @perf&.remove
      end

      private

      def joined(parts)
        outcome = @perf.text do |text|
          Joining.call(folder: @folder, files: parts.ended, text: text, ignore: [Process.pid, @perf.pid],
                       window: @perf.window, period_ns: @period_ns)
        end
        lines = outcome.problems
        lines << "perf took no sample" if outcome.samples.zero?
        if outcome.left_out.positive?
          lines << "perf took more samples than can be joined: the last #{outcome.left_out} are left out; " \
                   "a longer --interval takes fewer"
        end
        lines
      rescue BadRecording => error
        ["perf's frames are missing: #{error.message}"]
      end
    end
  end
end
