# frozen_string_literal: true

require "pitwall/bench/failed"
require "pitwall/bench/host"
require "pitwall/experiment"

module Pitwall
  module Experiment
    # The common part of all experiments: the subjects, the samples so far, and how the experiment ended.
    # @api private
    class Base
      # @return [Boolean] whether Ctrl-C ended the experiment
      attr_reader :interrupted
      # @return [Pitwall::Bench::Failed, nil] the error that ended the experiment after its first sample
      attr_reader :failure
      # @return [Hash] the host's state during the experiment, see Pitwall::Bench::Host#readings
      attr_reader :readings

      #: (Array[Pitwall::Bench::Subject], Settings, ?progress: NullProgress,
      #:  ?record: Record::Measurements::Writer?) -> void
      def initialize(subjects, settings, progress: NullProgress.new, record: nil)
        @subjects = subjects
        @settings = settings
        @progress = progress
        @record = record
        @random = Random.new(settings.seed)
        @samples = []
        @cases = []
        @failures = 0
        @interrupted = false
      end

      private

      # Runs the block, which measures. Ctrl-C ends the block. A failure after the first sample also ends the block
      # and is stored in {failure}.
      # @return [Hash] the report's facts about the run: settings, host, losses, duration
      # @raise [Pitwall::Bench::Failed] before the first sample
      # @raise [ResultsDiffer] at any time: the samples can't be compared
      def observe
        host = Pitwall::Bench::Host.new
        started = clock_ns
        begin
          yield
        rescue Interrupt
          @interrupted = true
        rescue Pitwall::Bench::Failed => error
          raise if @samples.empty? || error.is_a?(ResultsDiffer)

          @failure = error
        end
        @readings = host.readings
        facts = Pitwall::Bench::Host.facts
        { settings: @settings.to_facts.merge("interrupted" => @interrupted), host: facts,
          readings: facts.merge(@readings), losses: { "failed_blocks" => @failures }, duration_ns: clock_ns - started }
      end

      def announce(kase)
        @cases << kase
        @record&.announce(kase)
      end

      def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
