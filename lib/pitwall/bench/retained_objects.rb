# frozen_string_literal: true

require "pitwall/bench/recorded_counts"

module Pitwall
  module Bench
    # Counts the objects that still live at the end of what is compared, as `pitwall allocations` does: how many, and their bytes.
    class RetainedObjects < RecordedCounts
      COUNTED = "objects"
      OPTIONS = { mode: "none", flush_ns: 1_000_000_000, keep_argv: 0, "allocations.one_in": 1, "allocations.stacks": 0, "allocations.strings": 0 }.freeze

      private

      # [objects, bytes]
      def count(entry)
        return collected(entry, entry.calibration).map(&:to_f) if entry.measurer.subject.command

        batches = more_batches(entry)
        short, long = runs(entry, batches)
        short.zip(long).map { |before, after| (after - before).fdiv(batches * entry.calibration.batch) }
      end

      def told?(segment) = segment.allocation_totals

      def sum(segments)
        raise Failed, "what it retained is not known: a process was killed" unless segments.all?(&:tail)

        sites = segments.flat_map { |segment| segment.sites.select(&:program?) }
        [sites.sum(&:retained), sites.sum { |site| site.retained_bytes.to_i }]
      end
    end
  end
end
