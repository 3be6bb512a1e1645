# frozen_string_literal: true

require "pitwall/bench/execution"
require "pitwall/bench/failed"
require "pitwall/bench/said"

module Pitwall
  module Bench
    # Counts the instructions of what is compared under valgrind's callgrind, for machines whose processor counts none (or lets nobody
    # read it). Fifty times slower than life, and nearly exact: what differs from run to run is below a thousandth.
    class Instructions
      # One run says nothing of its doubt; three say enough of counts that hardly differ.
      ROUNDS = 3
      SECONDS = 0.02 # of a benchmark's own time
      SLOWDOWN = 200 # of the time allowed
      VALGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--error-limit=no"].freeze
      private_constant :SECONDS, :SLOWDOWN, :VALGRIND

      # counts: by entry, instructions per iteration (of a command: of its first process) of each round; reason: why there are none
      Result = Struct.new(:counts, :reason, keyword_init: true)

      # @param entries [Array<Blocks::Entry>] each side of one case, the base first
      #: (Array[Blocks::Entry], random: Random, ?progress: untyped) -> void
      def initialize(entries, random:, progress: nil)
        @entries = entries
        @random = random
        @progress = progress
      end

      #: () -> Result
      def call
        counts = @entries.map { [] }
        ROUNDS.times do
          @entries.each_index.to_a.shuffle(random: @random).each do |side|
            counts[side] << count(@entries[side])
            @progress&.call(counts.sum(&:size), ROUNDS * @entries.size)
          end
        end
        Result.new(counts: counts)
      rescue Failed => error
        Result.new(counts: [], reason: error.message)
      end

      private

      # What a benchmark's process does beside its iterations is in two runs of different length alike.
      def count(entry)
        return collected(entry, entry.calibration).to_f if entry.measurer.subject.command

        more = more_batches(entry)
        short, long = runs(entry, more)
        (long - short).fdiv(more * entry.calibration.batch)
      end

      # How many the longer run has more.
      def more_batches(entry) = (SECONDS * 1e9 / [entry.calibration.batch * entry.calibration.iteration_ns, 1].max).ceil

      def runs(entry, more)
        [1, 1 + more].map { |batches| collected(entry, entry.calibration.dup.tap { |calibration| calibration.batches = batches }) }
      end

      def collected(entry, calibration)
        words, environment = entry.measurer.plain_run(entry.case, calibration)
        limit = [calibration.process_ns / 1e9 * SLOWDOWN, 60].max
        finished = Execution.new(VALGRIND + words, env: environment.to_h, dir: entry.measurer.subject.dir, timeout: limit).call
        raise Failed, "valgrind is not installed (Debian: apt install valgrind)" if finished.error == Errno::ENOENT::Errno
        raise Failed, "did not end within #{limit.round} s under callgrind" if finished.timed_out

        number = finished.errors[/Collected : (\d+)/, 1] or raise Failed, "callgrind counted nothing: #{Said.line(finished.errors)}"
        number.to_i
      end
    end
  end
end
