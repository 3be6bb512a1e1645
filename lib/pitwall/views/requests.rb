# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # The slowest requests and jobs.
    class Requests < ReportView
      #: () -> String
      def name = "requests"

      #: () -> Array[Symbol]
      def refused_filters = %i[focus hide only]

      #: () -> Array[String]
      def formats = %w[text json markdown]

      #: () -> bool
      def of_request? = false

      #: () -> bool
      def without_weight? = true

      #: (Drawing) -> Array[String]
      def lines(drawing)
        report = drawing.report
        asked = ->(row) { report.queries_of(row) } if report.queries?
        Show::RequestsView.new(**drawing.unbounded, file: drawing.file)
                          .lines(report.requests, count: report.request_count, limit: drawing.limit || ROWS,
                                                  asked: asked, notes: notes(report), hints: Hints,
                                                  counters: report.work_counters)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "requests" => rows.requests }

      #: (Subject) -> String
      def markdown(subject) = Show::QueriesMarkdown.new(subject.report, **table_options(subject)).requests

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("requests", "Requests", place: 60, weighs: false)]

      private

      def notes(report)
        return Show::QueriesView.drivers(report.driver_time) unless report.queries?

        ["#{Show::QueriesView.total(report.query_total)} (#{Hints.queries})"]
      end
    end
  end
end
