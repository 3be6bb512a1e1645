# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # Threads with their times and states. JSON has them in every report.
    class Threads < ReportView
      #: () -> String
      def name = "threads"

      #: () -> bool
      def without_weight? = true

      #: () -> bool
      def without_samples? = false

      #: () -> bool
      def without_calls? = true

      #: (Drawing) -> Array[String]
      def lines(drawing) = drawing.methods_text.threads(limit: drawing.limit)

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("threads", "Threads", place: 50)]
    end
  end
end
