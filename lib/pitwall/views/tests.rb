# frozen_string_literal: true

require "pitwall/views/process_wide"
require "pitwall/views/report_view"

module Pitwall
  module Views
    # What tests took.
    class Tests < ReportView
      include ProcessWide

      #: () -> String
      def name = "tests"

      #: () -> Array[Symbol]
      def refused_filters = %i[time focus hide only]

      #: () -> Array[String]
      def formats = %w[text json markdown]

      #: () -> bool
      def of_request? = false

      #: () -> bool
      def without_weight? = true

      #: () -> bool
      def without_calls? = true

      #: (Drawing) -> Array[String]
      def lines(drawing)
        report = drawing.report
        Show::TestsView.new(**drawing.unbounded, file: drawing.file, hints: Hints)
                       .lines(report.tests, sampled: report.segments.any?(&:sampled?), limit: drawing.limit || ROWS,
                                            counters: report.work_counters)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "tests" => rows.tests }

      #: (Subject) -> String
      def markdown(subject) = Show::TestsMarkdown.new(subject.report, **markdown_options(subject)).to_s

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("tests", "Tests", place: 80, weighs: false)]
    end
  end
end
