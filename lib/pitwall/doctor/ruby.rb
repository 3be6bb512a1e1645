# frozen_string_literal: true

require "rbconfig"
require "pitwall/doctor/check"

module Pitwall
  class Doctor
    # Checks of one Ruby, from a trial with that Ruby.
    # @api private
    class Ruby
      OUTSIDE_NEEDS = "outside, which doesn't, needs a Ruby whose stacks Pitwall walks itself " \
                      "and a kernel that allows process_vm_readv"
      OUTSIDE_WORKS = "--mode outside, which doesn't, works here; " \
                      "unasked it is taken with Ruby 3.2 or newer and two cores (taskset, docker --cpus)"
      private_constant :OUTSIDE_NEEDS, :OUTSIDE_WORKS

      # All checks of a trial's Ruby.
      #: (Trial) -> Array[Check]
      def self.checks(trial) = new(trial).checks

      #: (Trial) -> void
      def initialize(trial)
        @trial = trial
      end

      # All checks. A Ruby that recorded nothing has only the first two.
      #: () -> Array[Check]
      def checks
        return [ruby, sampler] unless @trial.segment

        [ruby, sampler, *stacks, native, mode, thread_states, collector,
         jit("yjit", @trial.yjit), jit("zjit", @trial.zjit)]
      end

      private

      def ruby
        return Check.of("ruby", :ok, "#{@trial.description} at #{@trial.ruby}") if @trial.engine == "ruby"

        description = @trial.engine.empty? ? "does not run" : @trial.description
        Check.of("ruby", :no, "#{description} at #{@trial.ruby}",
                 affects: ["profile"],
                 meaning: "only CRuby 3.1 and newer can be profiled",
                 mend: "name another in the command: pitwall profile -- /path/to/ruby …")
      end

      # Sampling works when the trial's recording has stacks. Otherwise the check shows the trial's own message.
      def sampler
        segment = @trial.segment
        captures = segment ? segment.stat("captures") : 0
        if captures.positive?
          cost = segment.stat("handler_ns") / captures
          return Check.of("sampler", :ok, "#{captures} stacks taken in a trial of 0.1 " \
                                          "s#{", #{cost} ns each" if cost.positive?}")
        end

        Check.of("sampler", :no, @trial.problem || "a trial of 0.1 s took no stacks", affects: ["profile"],
                 meaning: "pitwall profile records nothing with this Ruby",
                 mend: "gem install pitwall-core with that Ruby (in a checkout: script/setup); if it is, " \
                       "try --mode safepoint")
      end

      # Whether Pitwall's own stack walk works. Exact calls work when it does: the tracer reads the same structures.
      # The tracer also tests at each start how this Ruby reports calls.
      def stacks
        return [no_walk] unless @trial.segment.header.walk == "own"

        [Check.of("stack walk", :ok, "own, proven by a self-test; blocks are told from their methods"),
         Check.of("exact calls", :ok, "pitwall trace, pitwall allocations --stacks")]
      end

      def no_walk
        Check.of("stack walk", :limited, "rb_profile_frames: #{@trial.walk}", affects: ["trace"],
                 meaning: "no outside mode, no trace, no allocations --stacks; a sample costs more, " \
                          "and a block goes by the name of its method",
                 mend: "a newer Pitwall may know it (gem update pitwall); " \
                       "or name another Ruby: pitwall trace -- /path/to/ruby …")
      end

      # Whether the threads' native stacks can be read with --native.
      def native
        if @trial.native == "works"
          return Check.of("native frames", :ok, "works: pitwall profile --native",
                          meaning: "functions without a symbol have an address: packages of symbols (-dbgsym, " \
                                   "-debuginfo) or report --symbols DIR name them")
        end

        Check.of("native frames", :note, @trial.native, meaning: "pitwall profile --native records Ruby frames only",
                 mend: "on Linux, x86-64 or aarch64, with a Ruby whose stacks Pitwall walks itself")
      end

      # The sampling mode chosen by --mode auto, as the trial's recording names it.
      def mode
        header = @trial.segment.header
        if header.mode == "outside"
          return Check.of("mode", :ok, "outside: #{header.mode_reason}",
                          meaning: "stacks are read from another core, the program is not interrupted; " \
                                   "--mode signal takes them in its threads")
        end

        Check.of("mode", :note, "#{header.mode}: #{header.mode_reason}",
                 mend: outside_advice(header),
                 meaning: "each sample interrupts the thread that it is of " \
                          "while it runs; a thread that waits gets no signal")
      end

      # How to use mode outside, which doesn't interrupt the program; nil in other modes than signal.
      def outside_advice(header)
        return unless header.mode == "signal"

        @trial.outside == "works" ? OUTSIDE_WORKS : OUTSIDE_NEEDS
      end

      def thread_states
        if @trial.segment.header.thread_states?
          Check.of("thread states", :ok, "running, waiting for the GVL and blocked are told apart")
        else
          Check.of("thread states", :limited, "unknown", affects: ["profile"],
                   meaning: "waiting for the GVL and sleeping look alike: wall time of threads is shown, " \
                            "its reason is not",
                   mend: "Ruby 3.2 brought the thread events that tell them apart; on 3.1 mode signal does")
        end
      end

      # The garbage collector. A Ruby built --with-modular-gc loads the collector that RUBY_GC_LIBRARY names.
      def collector
        return Check.of("collector", :ok, "Ruby's own") if @trial.collector == "default"

        Check.of("collector", :limited, @trial.collector, affects: %w[profile allocations],
                 meaning: "it does not tell when it runs: its time is the code's that ran, and objects are not counted",
                 mend: "run without RUBY_GC_LIBRARY")
      end

      def jit(name, state)
        meaning = "C functions may be missing from stacks, lines are as of the last exit from compiled code"
        Check.of(name, state == "on" ? :note : :ok, state, meaning: (meaning if state == "on"))
      end
    end
  end
end
