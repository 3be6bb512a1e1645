# frozen_string_literal: true

require "pitwall/show/terminal/markdown"
require "pitwall/show/requests/tests_view"

module Pitwall
  module Show
    # The durations of tests as Markdown, for pull requests and issues.
    class TestsMarkdown
      #: (Analyse::Report, ?warnings: Array[String], ?limit: Integer) -> void
      def initialize(report, warnings: [], limit: 20)
        @summary = report.summary
        @rows = report.tests
        @counters = report.work_counters
        @warnings = warnings
        @limit = limit
      end

      # The report as Markdown.
      #: () -> String
      def to_s
        head = [Markdown.text(@summary.programs.join(", ")), Markdown.text(@summary.rubies.join(", "))].reject(&:empty?)
        [head.join(" · "), "", *@warnings.flat_map { |warning| ["> #{Markdown.text(warning)}", ""] }, *body].join("\n")
      end

      private

      def body
        return [Markdown.text(TestsView::NONE)] if @rows.empty?

        shown = @rows.first(@limit)
        runs = @rows.any? { |row| row.runs > 1 }
        counted = CounterColumns.new(@counters, shown.map(&:counters)) if @counters.any?
        heads = TestsView.heads(runs, counted)
        rows = shown.map { |row| [*TestsView.numbers(row, runs, counted), Markdown.code(row.name)] }
        table = Markdown.table(heads, rows, left: [heads.size - 1])
        [*table, "", [*TestsView.notes(@rows, shown), *counted&.notes].join(" ")]
      end
    end
  end
end
