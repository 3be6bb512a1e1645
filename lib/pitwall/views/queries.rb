# frozen_string_literal: true

require "pitwall/views/process_wide"
require "pitwall/views/report_view"

module Pitwall
  module Views
    # Queries to databases by line.
    class Queries < ReportView
      include ProcessWide

      #: () -> String
      def name = "queries"

      #: () -> Array[Symbol]
      def refused_filters = %i[time focus hide only]

      #: () -> Array[String]
      def formats = %w[text json markdown]

      #: () -> bool
      def without_weight? = true

      #: () -> bool
      def without_calls? = true

      #: (Drawing) -> Array[String]
      def lines(drawing)
        report = drawing.report
        Show::QueriesView.new(**drawing.uncut, hints: Hints)
                         .lines(report.queries, report.query_total, drivers: report.driver_time,
                                                                    limit: drawing.limit || ROWS)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "queries" => rows.queries }

      #: (Subject) -> String
      def markdown(subject) = Show::QueriesMarkdown.new(subject.report, **table_options(subject)).queries

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("queries", "Queries", place: 70, weighs: false)]

      private

      # The table has them.
      def beside_request(_drawing) = []
    end
  end
end
