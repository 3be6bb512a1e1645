# frozen_string_literal: true

require "pitwall/bench/failed"
require "pitwall/bench/host"
require "pitwall/experiment"

module Pitwall
  module Experiment
    # What all experiments have in common: whom they measure, what they have so far, and how they may end.
    # @api private
    class Base
      # @return [Boolean] whether Ctrl-C ended it
      attr_reader :interrupted
      # @return [Pitwall::Bench::Failed, nil] what ended it, after something had been measured
      attr_reader :failure
      # @return [Hash] what the host did meanwhile (Pitwall::Bench::Host#readings)
      attr_reader :readings

      #: (Array[Pitwall::Bench::Subject], Settings, ?progress: Silence, ?record: Record::Measurements::Writer?) -> void
      def initialize(subjects, settings, progress: Silence.new, record: nil)
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

      # Runs what measures. Ctrl-C ends it, and so does a failure after something was measured, unless the block's samples mean nothing then.
      # @return [Hash] what a report says of how it was made
      # @raise [Pitwall::Bench::Failed]
      def observe
        host = Pitwall::Bench::Host.new
        started = clock_ns
        begin
          yield
        rescue Interrupt
          @interrupted = true
        rescue Pitwall::Bench::Failed => error
          raise if @samples.empty? || error.is_a?(Different)

          @failure = error
        end
        @readings = host.readings
        facts = Pitwall::Bench::Host.facts
        { settings: @settings.to_facts.merge("interrupted" => @interrupted), host: facts, readings: facts.merge(@readings),
          losses: { "failed_blocks" => @failures }, duration_ns: clock_ns - started }
      end

      def announce(kase)
        @cases << kase
        @record&.announce(kase)
      end

      def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
