# frozen_string_literal: true

module Pitwall
  module Bench
    # Measures one case in this process: the first call, a warm-up until times are steady, then the timed batches.
    class Measurement
      # Times are steady when the medians of the last two windows differ by at most this share.
      STEADY_WITHIN = 0.02
      # Batches in a window.
      WINDOW = 5
      MIN_WARMUP = 10 # batches
      MIN_SLOW_WARMUP = 2
      MAX_WARMUP = 60
      MAX_WARMUP_NS = 3_000_000_000
      # From this median on a batch is slow, and the warm-up is short.
      SLOW_NS = 100_000_000
      # A JIT compiles a method at about its thirtieth call. A warm-up runs more iterations than that.
      JIT_ITERATIONS = 50
      MAX_BATCHES = 30
      MIN_BATCHES = 3
      # The timed batches together take about this long.
      TIMED_NS = 300_000_000
      # Below this many steps of the clock, a time is noted as coarse.
      MIN_STEPS = 100

      attr_reader :batch, :batches, :warmup, :first_ns, :digest, :notes

      # @param batch [Integer] iterations a batch; 0: find a number
      # @param batches [Integer] timed batches; 0: by their length
      # @param warmup [Integer] batches of warm-up; 0: until times are steady
      # @param check [Boolean] whether to digest the value of the first call
      # @param turns [NoTurns, InTurns] InTurns: other processes run between the batches of this process
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

      # All that comes before the timed batches.
      def warm_up
        @threads = Thread.list.size
        run_first
        @warmup = @work.prime - -1
        find_batch if @batch.zero?
        times = @wanted_warmup.zero? ? warm_up_until_steady : run_warmup(@wanted_warmup)
        @batches = choose_batches(Measurement.median(times)) if @batches.zero?
        collect_garbage
      end

      # Runs the timed batches.
      def take
        @meter = Meter.new(@batches)
        counters = Counters
        counters.read # the first reading fills the inline caches of its own code, and those misses would be counted
        before = counters.read
        index = 0
        while index < @batches
          @turns.wait_for_turn
          @meter.take(index, @work, @batch)
          index = index.succ
          @turns.end_turn
        end
        after = counters.read
        @counters = @turns.without_waits(counters.difference(before, after), @batches)
        add_notes
      end

      # Lets the other processes of the block warm up.
      def end_turn
        @turns.end_turn
      end

      # Reporting the results takes time. It waits until no other process is timing a batch.
      def wait_for_turn
        @turns.wait_for_turn
      end

      # Runs batches without timing them, for a profiler.
      def run_only(batches)
        find_batch if @batch.zero?
        run_warmup(batches)
      end

      # @return [Hash] metric => value, or Array with a value for each batch
      def values
        { "wall" => @meter.wall, "cpu" => @meter.cpu, "objects" => @meter.objects, "bytes" => @meter.bytes,
          "gc_runs" => @meter.gc_runs, "gc_time" => @meter.gc_time }.merge(@counters)
      end

      def self.median(values)
        values.sort[values.size / 2]
      end

      private

      # Digests the value of the first call: only the first call happens in the same state in all processes.
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

      # Collects garbage, then runs a random number of batches. Otherwise the collections of all processes of a side
      # would fall into the same batches by chance, and that chance would look like a property of the side. The random
      # number comes from the system, because a file may seed Ruby's generator.
      def collect_garbage
        GC.start
        run_warmup(Random.new_seed % @batches.succ) if @collected
      end

      # @return [Integer] the batch's wall time without garbage collection, ns
      def warm_batch
        @warmup -= -@batch if @warmup
        wall = @scratch.take(0, @work, @batch)
        @collected = true if @scratch.gc_runs[0] > 0
        wall - @scratch.gc_time[0]
      end

      # Warms up until the last two windows agree. The code may have become faster since this process chose the
      # size of a batch. It then chooses a larger size, at most twice.
      def warm_up_until_steady
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        times = []
        searches = 1
        loop do
          times << warm_batch
          if steady?(times)
            return times unless searches < 3 && batch_too_short?(times) && grow_batch

            searches = searches.succ
            times = []
          elsif warmup_used_up?(times, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started)
            @notes << "unsteady"
            return times
          end
        end
      end

      def warmup_used_up?(times, elapsed_ns)
        times.size >= MIN_SLOW_WARMUP && (times.size >= MAX_WARMUP || elapsed_ns > MAX_WARMUP_NS)
      end

      def batch_too_short?(times)
        @calibrated && Measurement.median(times.last(WINDOW)) < Calibration::TARGET_NS
      end

      def grow_batch
        before = @batch
        find_batch(@batch)
        @batch > before
      end

      def steady?(times)
        slow = Measurement.median(times) > SLOW_NS
        return false if times.size < (slow ? MIN_SLOW_WARMUP : MIN_WARMUP)
        return false if Bench.jit? && !slow && @warmup < JIT_ITERATIONS

        window = [times.size / 2, WINDOW].min
        windows = [times.last(window * 2).first(window), times.last(window)]
        earlier, later = windows.map { |part| Measurement.median(part) }
        (earlier - later).abs <= STEADY_WITHIN * [earlier, later].max
      end

      def choose_batches(batch_ns)
        (TIMED_NS / [batch_ns, 1].max).clamp(MIN_BATCHES, MAX_BATCHES)
      end

      def add_notes
        @notes << "threads_left" if Thread.list.size > @threads
        timed_at_once = @work.fresh_states? ? [@batch, Work::MAX_STATES].min : @batch
        timed_ns = Measurement.median(@meter.wall) * timed_at_once / @batch
        @notes << "coarse_clock" if timed_ns < MIN_STEPS * clock_step
      end

      # The shortest time that the clock can measure, in ns: its step, or the time of one reading.
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
