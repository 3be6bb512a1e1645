# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/show"
require "pitwall/views/hints"

module Pitwall
  module Views
    # System calls of recorded processes or of logs, as text, JSON, Markdown or a page. report: Analyse::SyscallReport ·
    # name: for people · format: the log's, or "recording" · file: as one types it · warnings: Array of Record::Warning
    SyscallReport = Struct.new(:report, :name, :format, :file, :warnings, keyword_init: true) do
      class << self
        # Of recorded processes.
        # @param patterns [#call] → Analyse::SyscallPatterns in force
        # @raise [UsageError] none of them traced system calls
        #: (Array[Record::Segment], patterns: untyped, file: String, **untyped) ?{ (String) -> void } -> SyscallReport
        def of_segments(segments, patterns:, file:, warnings: [], &collapsed)
          traced = segments.select(&:syscalls?)
          raise UsageError, "#{file}: holds no system calls: record them with pitwall syscalls -- CMD" if traced.empty?

          report = Analyse::SyscallReport.of(*traced, patterns: patterns.call, &collapsed)
          name = traced.map { |segment| segment.header.program }.compact.uniq.first(3).join(", ")
          new(report: report, name: name, format: "recording", file: file, warnings: warnings)
        end

        # Of segments that traced system calls: name → [calls, how many failed, ns]
        #: (Array[Record::Segment]) -> Hash[String, Array[Integer]]
        def totals(segments)
          segments.each_with_object(Hash.new { |sums, name| sums[name] = [0, 0, 0] }) do |segment, sums|
            segment.syscall_totals.each { |name, counts| sums[name] = sums[name].zip(counts).map(&:sum) }
          end
        end

        # What a recording's page has of system calls; nil where none were traced.
        # @param found [SyscallReport, nil] of these segments, where it was made already
        #: (Array[Record::Segment], patterns: untyped, ?found: SyscallReport?) -> untyped
        def page_part(segments, patterns:, found: nil)
          traced = segments.select(&:syscalls?)
          return if traced.empty?
          return Show::SyscallsPart.of_totals(totals(traced), hints: Hints) if traced.none?(&:syscall_rows?)

          found ||= of_segments(segments, patterns: patterns, file: "")
          Show::SyscallsPart.new(report: found.report, name: found.name, format: found.format, hints: Hints)
        end

        # @param reports [Array<SyscallReport>] one, or two that are compared
        #: (Array[SyscallReport], String?, ?limit: Integer?, ?base: String?, **untyped) -> String
        def draw(reports, format, limit: nil, base: nil, width: 100, palette: Show::Plain)
          one = reports.size == 1
          shown = reports.map { |report| { **report.to_h, hints: Hints } }
          case format
          when "json"
            return Show::SyscallsJson.change(*shown, limit: limit) unless one

            Show::SyscallsJson.new(**shown[0], limit: limit).to_s
          when "html" then page(reports, base)
          when "markdown"
            return Show::SyscallsMarkdown.change(*shown, limit: limit) unless one

            Show::SyscallsMarkdown.new(**shown[0], limit: limit, base: base).to_s
          else
            look = { limit: limit, width: width, palette: palette, base: base }
            one ? Show::SyscallsText.new(**shown[0], **look).to_s : Show::SyscallsChange.new(*shown, **look).to_s
          end
        end

        private

        def page(reports, base)
          return Show::SyscallsChangePage.new(*reports.map(&:to_h), base: base).to_s if reports.size == 2

          part = Show::SyscallsPart.new(**reports[0].to_h.slice(:report, :name, :format, :warnings), hints: Hints)
          Show::SyscallsPage.new(part, base: base).to_s
        end
      end
    end
  end
end
