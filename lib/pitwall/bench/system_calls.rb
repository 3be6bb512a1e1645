# frozen_string_literal: true

require "pitwall/bench/recorded_counts"

module Pitwall
  module Bench
    # Counts the file-system calls of a run, as `pitwall syscalls --count` does: the calls of its Ruby processes, from
    # the moment when Pitwall is loaded.
    class SystemCalls < RecordedCounts
      UNIT = "calls"
      OPTIONS = { flush_ns: 100_000_000, "syscalls.count": 1, "syscalls.stacks": 0, "syscalls.io": 0 }.freeze

      private

      def counted?(segment) = segment.syscalls?

      def sum(segments) = segments.sum { |segment| segment.syscall_totals.values.sum(&:first) }
    end
  end
end
