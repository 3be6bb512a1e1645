# frozen_string_literal: true

require "pitwall/bench/failed"
require "pitwall/bench/turns"

module Pitwall
  module Bench
    # Takes samples in blocks: each block runs every entry once, one right after another, in random order, so that
    # whatever the machine does for a second or a minute meets all of them alike.
    class Blocks
      # What takes part: who measures it ({Script} or {WholeCommand}), its case and calibration.
      Entry = Struct.new(:measurer, :case, :calibration, keyword_init: true)

      # A process that fails now and then is a loss to be told; one that keeps failing is no benchmark.
      MOST_FAILURES = 3
      private_constant :MOST_FAILURES

      # @return [Integer] blocks that were given up because one of their processes failed
      attr_reader :failures
      # @return [Integer] blocks done
      attr_reader :done

      # @param in_turns [Boolean] batch by batch ({Turns}), instead of one process after the other
      #: (Array[Entry], random: Random, ?in_turns: bool) -> void
      def initialize(entries, random:, in_turns: false)
        @entries = entries
        @in_turns = in_turns
        @random = random
        @done = @failures = 0
        @elapsed_ns = 0
      end

      # Runs one block.
      # @return [Array<Record::Sample>, nil] in the order they were taken; nil for a block that failed
      # @raise [Failed] too many did
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
        raise if @failures > MOST_FAILURES || @failures > @done + 1

        nil
      end

      # What a block takes: by those done, or before by what calibration took.
      #: () -> Float
      def block_ns = @done.positive? ? @elapsed_ns.fdiv(@done) : @entries.sum { |entry| entry.calibration.process_ns }.to_f

      private

      def one_by_one(entries)
        entries.map.with_index { |entry, order| entry.measurer.sample(entry.case, entry.calibration, block: @done, order: order) }
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
