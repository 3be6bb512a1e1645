# frozen_string_literal: true

require "pitwall/bench/recorded_counts"

module Pitwall
  module Bench
    # Counts the file-system calls of what is compared, as `pitwall syscalls --count` does: those of its Ruby processes, from when Pitwall is loaded.
    class SystemCalls < RecordedCounts
      COUNTED = "calls"
      OPTIONS = { mode: "none", flush_ns: 100_000_000, keep_argv: 0, "syscalls.count": 1, "syscalls.stacks": 0, "syscalls.io": 0 }.freeze

      private

      def told?(segment) = segment.syscalls?

      def sum(segments) = segments.sum { |segment| segment.syscall_totals.values.sum(&:first) }
    end
  end
end
