# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # Times by the values of a label.
    class Labels < ReportView
      #: () -> String
      def name = "labels"

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--label-key NAME", "times by the values of a label") { |name| choose(options, label_key: name) }
      end

      #: () -> bool
      def without_weight? = true

      #: () -> bool
      def without_samples? = false

      #: (Drawing) -> Array[String]
      def lines(drawing)
        Show::LabelsView.new(**drawing.unbounded, hints: Hints).lines(drawing.report.labels, limit: drawing.limit)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "labels" => rows.labels }

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("labels", "Labels", place: 90)]
    end
  end
end
