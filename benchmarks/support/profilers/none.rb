# frozen_string_literal: true

module Benchmarks
  module Profilers
    # No profiler: what all ratios are taken to. Also what a profiler answers that has nothing to say.
    class NoneCase
      def initialize(interval_ns: 0, out: nil)
        @interval_ns = interval_ns
        @out = out
      end

      def start; end
      def stop; end

      # How often the profiler really interrupted or looked, as far as it tells.
      #: () -> Integer?
      def ticks = nil

      # { "wall" => { method name => weight } }, for the weights this profiler has.
      def totals = {}

      # { counter => value } of the last recording.
      def counters = nil

      # { name of the frame next to the root => samples }, for profilers of native frames.
      def roots = nil

      # { native thread id => CPU ns } where the profiler has CPU weights of each thread.
      def thread_cpu_ns = nil
    end
  end
end
