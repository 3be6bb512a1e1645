# frozen_string_literal: true

require "pitwall/show/terminal/location"
require "pitwall/show/terminal/markdown"
require "pitwall/show/requests/queries_view"
require "pitwall/show/requests/requests_view"

module Pitwall
  module Show
    # Requests, or queries to databases, as Markdown for pull requests and issues.
    class QueriesMarkdown
      # @param base [String, nil] folder; paths below it are shown relative to it
      #: (Analyse::Report, ?warnings: Array[String], ?limit: Integer, ?base: String?,
      #:  ?findings: Array[untyped]) -> void
      def initialize(report, warnings: [], limit: 20, base: nil, findings: [])
        @report = report
        @warnings = warnings
        @limit = limit
        @location = Location.new(base)
        @findings = findings
      end

      # The report about queries, by line, as Markdown.
      #: () -> String
      def queries = below_heading(query_table)

      # The report about the slowest requests, with their numbers of queries, as Markdown.
      #: () -> String
      def requests = below_heading(request_table)

      private

      def below_heading(lines)
        summary = @report.summary
        head = [Markdown.text(summary.programs.join(", ")), Markdown.text(summary.rubies.join(", "))].reject(&:empty?)
        warnings = @warnings.flat_map { |warning| ["> #{Markdown.text(warning)}", ""] }
        [head.join(" · "), "", *Markdown.findings(@findings), *warnings, *lines].join("\n")
      end

      def query_table
        rows = @report.queries
        drivers = QueriesView.drivers(@report.driver_time)
        return [Markdown.text([QueriesView::NONE, *drivers].join(". "))] if rows.empty?

        heads = [*QueriesView.heads, "method", "line"]
        cells = rows.first(@limit).map do |row|
          [*QueriesView.numbers(row, @report.query_total), Markdown.code(QueriesView.name(row)),
           Markdown.code(@location.text(row.path, row.line))]
        end
        more = "#{Units.things(rows.size - @limit, "more row")}. " if rows.size > @limit
        [*Markdown.table(heads, cells, left: [heads.size - 2, heads.size - 1]), "",
         "#{more}#{QueriesView.total(@report.query_total)}."]
      end

      def request_table
        rows = @report.requests
        return [Markdown.text(RequestsView::NONE)] if rows.empty?

        view = RequestsView.new(width: Float::INFINITY, palette: Plain, location: @location, file: "")
        counted = view.count_caches(@report.work_counters, rows.first(@limit))
        queries = @report.queries? ? ->(row) { @report.queries_of(row) } : nil
        heads = [*view.heads(queries), "thread", "what"]
        cells = rows.first(@limit).map do |row|
          [*view.numbers(row, queries), Markdown.code(row.thread.title), Markdown.code(row.name)]
        end
        notes = queries ? [QueriesView.total(@report.query_total)] : QueriesView.drivers(@report.driver_time)
        notes += counted.notes if counted
        [*Markdown.table(heads, cells, left: [heads.size - 2, heads.size - 1]),
         *notes.flat_map { |text| ["", "#{text}."] }]
      end
    end
  end
end
