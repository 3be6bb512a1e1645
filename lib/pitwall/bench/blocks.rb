# frozen_string_literal: true

require "pitwall/bench/failed"
require "pitwall/bench/turns"

module Pitwall
  module Bench
    # Takes samples in blocks. Each block runs every entry once, one right after another, in random order. A disturbance
    # of the machine that lasts a second or a minute then affects all entries alike.
    class Blocks
      # measurer:    {Script} or {WholeCommand}
      # case:        Record::Case
      # calibration: Script::Calibration
      Entry = Struct.new(:measurer, :case, :calibration, keyword_init: true)

      # A few failed blocks are reported as losses. More of them mean that the benchmark itself is broken.
      MAX_FAILURES = 3
      private_constant :MAX_FAILURES

      # @return [Integer] blocks that were given up because one of their processes failed
      attr_reader :failures
      # @return [Integer] blocks done
      attr_reader :done

      # @param in_turns [Boolean] whether the processes of a block run batch by batch in turns ({Turns}); otherwise one
      #   process runs after the other
      #: (Array[Entry], random: Random, ?in_turns: bool) -> void
      def initialize(entries, random:, in_turns: false)
        @entries = entries
        @in_turns = in_turns
        @random = random
        @done = @failures = 0
        @elapsed_ns = 0
      end

      # Runs one block.
      # @return [Array<Record::Sample>, nil] in the order they were taken; nil if the block failed
      # @raise [Failed] too many blocks failed
      #: () -> Array[Record::Sample]?
      def run
        started = clock_ns
        entries = @entries.shuffle(random: @random)
        samples = @in_turns ? in_turns(entries) : one_by_one(entries)
        @done += 1
        @elapsed_ns += clock_ns - started
        samples
      rescue Failed
        @failures += 1
        raise if @failures > MAX_FAILURES || @failures > @done + 1

        nil
      end

      # The time that a block takes: the mean of the blocks done, or before the first one the time of the calibrations.
      #: () -> Float
      def block_ns
        @done.positive? ? @elapsed_ns.fdiv(@done) : @entries.sum { |entry| entry.calibration.process_ns }.to_f
      end

      private

      def one_by_one(entries)
        entries.map.with_index do |entry, order|
          entry.measurer.sample(entry.case, entry.calibration, block: @done, order: order)
        end
      end

      def in_turns(entries)
        Turns.run(entries.map { |entry| entry.calibration.batches }) do |order, seat|
          entry = entries[order]
          entry.measurer.sample(entry.case, entry.calibration, block: @done, order: order, seat: seat)
        end
      end

      def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
