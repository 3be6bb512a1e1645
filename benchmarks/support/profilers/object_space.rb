# frozen_string_literal: true

require "objspace"
require_relative "none"

module Benchmarks
  module Profilers
    # Ruby's own tracing, on which memory_profiler stands.
    class ObjectSpaceCase < NoneCase
      def start = ObjectSpace.trace_object_allocations_start

      def stop
        ObjectSpace.trace_object_allocations_stop
        ObjectSpace.trace_object_allocations_clear
      end
    end
  end
end
