# frozen_string_literal: true

module Pitwall
  module Bench
    # Finds the number of iterations in a batch.
    module Calibration
      # Reading the clocks around 1 ms of work adds less than a thousandth to it.
      TARGET_NS = 1_000_000
      MAX_ITERATIONS = 1_000_000_000
      # The memory that states made ahead for a batch may take.
      STATES_BYTES = 128 * 1024 * 1024

      # @return [Array(Integer, Integer)] iterations that take at least `target` ns (1 if one takes longer), and the
      #   number of iterations run to find it
      def self.batch(work, meter, target = TARGET_NS, start = 1)
        times = start
        spent = 0
        resident = resident_bytes
        loop do
          elapsed = meter.take(0, work, times)
          spent -= -times
          return [times, spent] if elapsed >= target || times >= MAX_ITERATIONS
          return [times, spent] if work.fresh_states? && resident_bytes - resident > STATES_BYTES

          times = larger(times, elapsed, target)
        end
      end

      # The number of iterations that should take a little longer than the target: at most ten times as many as before,
      # rounded up to two digits.
      def self.larger(times, elapsed, target)
        wanted = (times * (target * 1.1 / [elapsed, 1].max).clamp(1.05, 10)).ceil.clamp(times.succ, MAX_ITERATIONS)
        unit = 10**[Math.log10(wanted).floor - 1, 0].max
        (wanted.to_f / unit).ceil * unit
      end

      def self.resident_bytes
        File.read("/proc/self/statm").split[1].to_i * 4096
      rescue SystemCallError
        0
      end
    end
  end
end
