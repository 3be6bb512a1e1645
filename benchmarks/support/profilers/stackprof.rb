# frozen_string_literal: true

require "stackprof"
require_relative "none"
require_relative "../method_totals"

module Benchmarks
  module Profilers
    class StackprofCase < NoneCase
      # @param every [Integer] objects, in mode object
      def initialize(mode:, every: nil, **rest)
        super(**rest)
        @mode = mode
        @interval = every || @interval_ns / 1000
      end

      def start = StackProf.start(mode: @mode.to_sym, interval: @interval, raw: true)

      def stop
        StackProf.stop
        @results = StackProf.results
        File.binwrite(@out, Marshal.dump(@results)) if @out
      end

      def ticks = @results[:samples] + @results[:missed_samples]
      def totals = { @mode => MethodTotals.of(stacks) }

      private

      # raw: [depth, frame ids…, count, depth, …]; garbage collection is a pseudo frame.
      def stacks
        raw = @results[:raw] || []
        names = @results[:frames].transform_values { |frame| frame[:name] }
        found = []
        at = 0
        while at < raw.size
          depth = raw[at]
          found << [raw[at + 1, depth].map { |id| names.fetch(id) }, raw[at + 1 + depth]]
          at += depth + 2
        end
        found
      end
    end
  end
end
