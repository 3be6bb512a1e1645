# frozen_string_literal: true

require "pitwall/views/of_collections"
require "pitwall/views/report_view"

module Pitwall
  module Views
    # The garbage collector's runs.
    class GC < ReportView
      include OfCollections

      #: () -> String
      def name = "gc"

      #: () -> Array[Symbol]
      def refused_filters = %i[focus hide only]

      #: () -> bool
      def without_calls? = true

      #: (Drawing) -> Array[String]
      def lines(drawing) = Show::GCView.new(**drawing.look).lines(drawing.report.collections, limit: drawing.limit)

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "gc" => rows.collections }

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("gc", "GC", place: 100, weighs: false)]
    end
  end
end
