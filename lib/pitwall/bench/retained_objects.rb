# frozen_string_literal: true

require "pitwall/bench/recorded_counts"

module Pitwall
  module Bench
    # Counts the objects that live at the end of a run, and their bytes, as `pitwall allocations` does.
    class RetainedObjects < RecordedCounts
      UNIT = "objects"
      OPTIONS = { flush_ns: 1_000_000_000, "allocations.one_in": 1, "allocations.stacks": 0,
                  "allocations.strings": 0 }.freeze

      private

      # @return [Array(Float, Float)] objects and bytes
      def count(entry)
        return collected(entry, entry.calibration).map(&:to_f) if entry.measurer.subject.command

        extra = extra_batches(entry)
        short, long = runs(entry, extra)
        short.zip(long).map { |before, after| (after - before).fdiv(extra * entry.calibration.batch) }
      end

      def counted?(segment) = segment.allocation_totals

      def sum(segments)
        raise Failed, "its retained objects are unknown: a process was killed" unless segments.all?(&:tail)

        sites = segments.flat_map { |segment| segment.sites.select(&:program?) }
        [sites.sum(&:retained), sites.sum { |site| site.retained_bytes.to_i }]
      end
    end
  end
end
