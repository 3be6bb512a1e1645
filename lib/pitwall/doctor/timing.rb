# frozen_string_literal: true

require "pitwall/doctor/check"
require "pitwall/doctor/proc_file"

module Pitwall
  class Doctor
    # Checks of the clocks' resolution, the kernel's tick and the delay of wake-ups.
    # @api private
    module Timing
      FAST_CLOCKS = /tsc|kvm-clock|arch_sys_counter|hyperv/.freeze # clock sources that are read without a system call
      SLEEPS = 30 # number of sleeps whose delay is measured
      SLEEP_S = 0.0002 # seconds of each
      private_constant :FAST_CLOCKS, :SLEEPS, :SLEEP_S

      module_function

      # All checks of this module.
      #: () -> Array[Check]
      def checks = [clock, tick, wake_up].compact

      # Source and resolution of the monotonic clock.
      #: () -> Check
      def clock
        source = ProcFile.read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        resolution = Process.clock_getres(Process::CLOCK_MONOTONIC, :nanosecond)
        value = "#{source || "monotonic"}, #{resolution} ns"
        if resolution > 1000
          Check.of("clock", :limited, value,
                   meaning: "times are coarser than a microsecond", affects: ["profile"],
                   mend: "the kernel runs without high resolution timers (CONFIG_HIGH_RES_TIMERS)")
        elsif source && !source.match?(FAST_CLOCKS)
          Check.of("clock", :limited, value,
                   meaning: "reading the clock costs a system call: samples cost more",
                   affects: ["profile"],
                   mend: "boot with clocksource=tsc where the processor's is constant " \
                         "(the machine's owner decides)")
        else
          Check.of("clock", :ok, value)
        end
      end

      # The kernel's tick, in ms: the resolution of the coarse clock.
      #: () -> Check?
      def tick
        return unless defined?(Process::CLOCK_MONOTONIC_COARSE)

        ns = Process.clock_getres(Process::CLOCK_MONOTONIC_COARSE, :nanosecond)
        Check.of("kernel tick", :ok, "#{ns.fdiv(1_000_000).round(1)} ms",
                 meaning: "CPU timers fire no oftener than this; Pitwall weighs samples by measured CPU time and " \
                          "needs none")
      end

      # How late a short sleep ends: the median of SLEEPS sleeps, in µs.
      #: () -> Check
      def wake_up
        late = Array.new(SLEEPS) do
          before = now_ns
          sleep SLEEP_S
          now_ns - before - (SLEEP_S * 1_000_000_000).to_i
        end
        median = late.sort[SLEEPS / 2] / 1000
        value = "#{median} µs late (median of #{SLEEPS})"
        return Check.of("wake-ups", :ok, value) unless median > 1000

        Check.of("wake-ups", :limited, value,
                 affects: ["profile"],
                 meaning: "samples come later than asked for; their weights are still the measured time",
                 mend: "the machine is busy or its CPU share is used up: see cores")
      end

      # The monotonic clock, in ns.
      #: () -> Integer
      def now_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
    private_constant :Timing
  end
end
