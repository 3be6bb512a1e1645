# frozen_string_literal: true

require "bare"
require_relative "none"

module Benchmarks
  module Profilers
    class BareTimerCase < NoneCase
      attr_reader :ticks

      def start = BareTimer.start(@interval_ns)
      def stop = @ticks = BareTimer.stop
    end
  end
end
