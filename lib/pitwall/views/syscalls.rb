# frozen_string_literal: true

require "pitwall/views/syscall_report"
require "pitwall/views/whole_process"

module Pitwall
  module Views
    # System calls in patterns, with the Ruby lines that make them.
    class Syscalls < WholeProcess
      #: () -> String
      def name = "syscalls"

      #: () -> String
      def usual_for = "system calls"

      #: (Recorded, String?) -> bool
      def usual?(recorded, _weight)
        recorded.syscalls? && recorded.segments.none?(&:boot?) && !recorded.sampled? && !recorded.traced? &&
          !recorded.followed?
      end

      # Versions before this list accepted them here.
      #: () -> Array[Symbol]
      def ignored_options = %i[by sort retained]

      #: (Subject) -> String
      def text(subject)
        width, palette = subject.screen.to_h.values_at(:width, :palette)
        totals = totals(subject)
        totals ? totals.text(width: width, palette: palette) : drawn(subject, width: width, palette: palette)
      end

      #: (Subject) -> String
      def json(subject) = totals(subject)&.json || drawn(subject)

      #: (Subject) -> String
      def markdown(subject) = totals(subject)&.markdown || drawn(subject)

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("syscalls", "System calls", place: 130, weighs: false)]

      private

      # Where calls were only counted, or no rows are left of them, there are only totals; else nil.
      def totals(subject)
        traced = subject.chosen.select(&:syscalls?)
        return if traced.empty? || traced.any?(&:syscall_rows?)

        sums = SyscallReport.totals(traced)
        return if traced.none?(&:syscalls_counted?) && sums.empty?

        Show::SyscallTotals.new(sums, warnings: subject.warnings, limit: subject.asked.limit)
      end

      # @raise [UsageError] no system calls were traced
      def drawn(subject, **look)
        report = SyscallReport.of_segments(subject.chosen, patterns: subject.application.patterns,
                                                           file: subject.files.join(" "), warnings: subject.warnings)
        SyscallReport.draw([report], subject.asked.format, limit: subject.asked.limit, base: subject.application.base,
                                                           **look)
      end
    end
  end
end
