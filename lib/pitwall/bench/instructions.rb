# frozen_string_literal: true

require "pitwall/bench/execution"
require "pitwall/bench/failed"
require "pitwall/bench/error_line"

module Pitwall
  module Bench
    # Counts the instructions of the compared sides under valgrind's callgrind. This serves machines whose processor
    # counts no instructions, or lets nobody read the counter. It is fifty times slower than a normal run and nearly
    # exact: counts of two runs differ by less than a thousandth.
    class Instructions
      # One run gives no interval. Three runs are enough for counts that hardly differ.
      ROUNDS = 3
      SECONDS = 0.02 # a benchmark's own time in the longer run
      SLOWDOWN = 200 # the time limit, relative to a normal run
      VALGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--error-limit=no"].freeze
      private_constant :SECONDS, :SLOWDOWN, :VALGRIND

      # counts: by entry, an Array with the instructions an iteration in each round (of a command: of its first process)
      # reason: why there are no counts; nil if there are
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

      # Two runs of different length do the same work besides their iterations, so the difference
      # is the iterations' own.
      def count(entry)
        return collected(entry, entry.calibration).to_f if entry.measurer.subject.command

        extra = extra_batches(entry)
        short, long = runs(entry, extra)
        (long - short).fdiv(extra * entry.calibration.batch)
      end

      # Batches of the longer run beyond those of the shorter one.
      def extra_batches(entry)
        (SECONDS * 1e9 / [entry.calibration.batch * entry.calibration.iteration_ns, 1].max).ceil
      end

      def runs(entry, extra)
        [1, 1 + extra].map do |batches|
          collected(entry, entry.calibration.dup.tap { |calibration| calibration.batches = batches })
        end
      end

      def collected(entry, calibration)
        words, environment = entry.measurer.plain_run(entry.case, calibration)
        limit = [calibration.process_ns / 1e9 * SLOWDOWN, 60].max
        dir = entry.measurer.subject.dir
        finished = Execution.new(VALGRIND + words, env: environment.to_h, dir: dir, timeout: limit).call
        no_valgrind = finished.error == Errno::ENOENT::Errno
        raise Failed, "valgrind is not installed (Debian: apt install valgrind)" if no_valgrind
        raise Failed, "did not end within #{limit.round} s under callgrind" if finished.timed_out

        number = finished.errors[/Collected : (\d+)/, 1]
        number or raise Failed, "callgrind counted nothing: #{ErrorLine.of(finished.errors)}"
        number.to_i
      end
    end
  end
end
