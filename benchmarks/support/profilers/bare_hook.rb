# frozen_string_literal: true

require "bare"
require_relative "none"

module Benchmarks
  module Profilers
    class BareHookCase < NoneCase
      def start = BareHook.start
      def stop = BareHook.stop
    end
  end
end
