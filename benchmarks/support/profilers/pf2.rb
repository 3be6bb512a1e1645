# frozen_string_literal: true

require "pf2"
require "pf2/reporter"
require_relative "none"
require_relative "../method_totals"

module Benchmarks
  module Profilers
    class Pf2Case < NoneCase
      def initialize(mode:, **rest)
        super(**rest)
        @mode = mode
      end

      def start = Pf2.start(interval_ms: @interval_ns / 1_000_000, time_mode: @mode.to_sym)

      def stop
        @result = Pf2.stop
        File.binwrite(@out, Pf2::Reporter::FirefoxProfilerSer2.new(@result).emit) if @out
      end

      def ticks = @result[:collected_sample_count] + @result[:dropped_sample_count]
      def totals
        { @mode => MethodTotals.of(@result[:samples].map { |sample| [sample[:stack].map { |id| label(id) }, 1] }) }
      end

      # { native function next to the root => samples }
      def roots
        @result[:samples].each_with_object(Hash.new(0)) do |sample, found|
          native = sample[:native_stack]
          named = native.last(3).reverse.map { |id| label(id) }.find { |name| !name.empty? }
          found[native.empty? ? "-" : named || "?"] += 1
        end
      end

      private

      def label(location_id)
        function = @result[:functions].fetch(@result[:locations].fetch(location_id)[:function_index])
        function[:name].to_s
      end
    end
  end
end
