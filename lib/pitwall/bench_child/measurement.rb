# frozen_string_literal: true

module Pitwall
  module Bench
    # Measures one case in this process: first call, warm-up until it is steady, timed batches.
    class Measurement
      STEADY_WITHIN = 0.02
      WINDOW = 5
      LEAST_WARMUP = 10
      LEAST_SLOW_WARMUP = 2
      MOST_WARMUP = 60
      WARMUP_NS = 3_000_000_000
      SLOW_NS = 100_000_000
      # A JIT compiles a method on its thirtieth call or so: a case must have run more often.
      JIT_ITERATIONS = 50
      BATCHES = 30
      LEAST_BATCHES = 3
      TIMED_NS = 300_000_000
      # What is timed should take so many of the clock's steps.
      STEPS = 100

      attr_reader :batch, :batches, :warmup, :first_ns, :digest, :notes

      # batch, batches, warmup: 0 to find them; turns: others run between this process's batches
      def initialize(work, batch: 0, batches: 0, warmup: 0, check: false, turns: NoTurns)
        @work = work
        @turns = turns
        @batch = batch
        @batches = batches
        @wanted_warmup = warmup
        @check = check
        @notes = []
        @scratch = Meter.new(1)
      end

      # The process up to the timed part.
      def warm_up
        @threads = Thread.list.size
        run_first
        @warmup = @work.prime - -1
        find_batch if @batch.zero?
        times = @wanted_warmup.zero? ? become_steady : run_warmup(@wanted_warmup)
        @batches = choose_batches(Measurement.median(times)) if @batches.zero?
        come_to_rest
      end

      # The timed part.
      def take
        @meter = Meter.new(@batches)
        counters = Counters
        before = counters.read
        index = 0
        while index < @batches
          @turns.await
          @meter.take(index, @work, @batch)
          index = index.succ
          @turns.pass
        end
        after = counters.read
        @counters = @turns.without_waits(counters.difference(before, after), @batches)
        note_what_was_seen
      end

      # Warm: the others may become so.
      def turn_over
        @turns.pass
      end

      # What is left takes time that another's batch would miss.
      def last_turn
        @turns.await
      end

      # Only runs: a profiler watches.
      def run_only(batches)
        find_batch if @batch.zero?
        run_warmup(batches)
      end

      # metric → values
      def values
        { "wall" => @meter.wall, "cpu" => @meter.cpu, "objects" => @meter.objects, "bytes" => @meter.bytes,
          "gc_runs" => @meter.gc_runs, "gc_time" => @meter.gc_time }.merge(@counters)
      end

      def self.median(values)
        values.sort[values.size / 2]
      end

      private

      # The value of the very first call is the one digested: it is the only call that all processes make in the same state.
      def run_first
        @work.prepare(1)
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        value = @work.once
        @first_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
        @work.release
        Process.exit!(0) unless Process.pid == @scratch.pid
        @digest = Digest.of(value) if @check
      end

      def find_batch(start = 1)
        @batch, spent = Calibration.batch(@work, @scratch, Calibration::TARGET_NS, start)
        @calibrated = true
        @warmup -= -spent if @warmup
      end

      def run_warmup(batches)
        (1..batches).map { warm_batch }
      end

      # All processes collected at the same point would go on with their collections in the same batches: what a side's batches
      # hold would be chance, the same chance in each process. So each begins at another point between two collections. (By the
      # system's entropy: a file may seed Ruby's.)
      def come_to_rest
        GC.start
        run_warmup(Random.new_seed % @batches.succ) if @collected
      end

      # @return [Integer] its wall time without garbage collection, ns
      def warm_batch
        @warmup -= -@batch if @warmup
        wall = @scratch.take(0, @work, @batch)
        @collected = true if @scratch.gc_runs[0] > 0
        wall - @scratch.gc_time[0]
      end

      # Until the last two windows agree. Where the batch was found here and the code has become faster since, finds it again.
      def become_steady
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        times = []
        found = 1
        loop do
          times << warm_batch
          if enough?(times)
            return times unless @calibrated && found < 3 && Measurement.median(times.last(WINDOW)) < Calibration::TARGET_NS && grow_batch

            found = found.succ
            times = []
          elsif tried?(times, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started)
            @notes << "unsteady"
            return times
          end
        end
      end

      def tried?(times, elapsed_ns)
        times.size >= LEAST_SLOW_WARMUP && (times.size >= MOST_WARMUP || elapsed_ns > WARMUP_NS)
      end

      def grow_batch
        before = @batch
        find_batch(@batch)
        @batch > before
      end

      def enough?(times)
        slow = Measurement.median(times) > SLOW_NS
        return false if times.size < (slow ? LEAST_SLOW_WARMUP : LEAST_WARMUP)
        return false if Bench.jit? && !slow && @warmup < JIT_ITERATIONS

        window = [times.size / 2, WINDOW].min
        earlier, later = [times.last(window * 2).first(window), times.last(window)].map { |part| Measurement.median(part) }
        (earlier - later).abs <= STEADY_WITHIN * [earlier, later].max
      end

      def choose_batches(batch_ns)
        (TIMED_NS / [batch_ns, 1].max).clamp(LEAST_BATCHES, BATCHES)
      end

      def note_what_was_seen
        @notes << "threads_left" if Thread.list.size > @threads
        timed_at_once = @work.fresh_states? ? [@batch, Work::AHEAD].min : @batch
        @notes << "coarse_clock" if Measurement.median(@meter.wall) * timed_at_once / @batch < STEPS * clock_step
      end

      # The least time that the clock can tell: its step, or what reading it takes.
      def clock_step
        (1..50).map do
          before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
          after = before
          after = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) until after > before
          after - before
        end.min
      end
    end
  end
end
