# frozen_string_literal: true

require "pitwall/views/of_collections"
require "pitwall/views/report_view"

module Pitwall
  module Views
    # Lines by what they cost together with the garbage collection that they cause.
    class GCCost < ReportView
      include OfCollections

      #: () -> String
      def name = "gc-cost"

      #: () -> Array[Symbol]
      def refused_filters = %i[time]

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--predict PLACE", "what removing PATH:LINE or a method would save, " \
                                     "with the GC it causes (a model)") { |place| choose(options, predict: place) }
      end

      #: (Drawing) -> Array[String]
      def lines(drawing)
        report = drawing.report
        Show::GCCostView.new(**drawing.look, hints: Hints)
                        .lines(report.gc_cost, prediction: report.prediction, limit: drawing.limit)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "gc_cost" => rows.gc_cost }

      private

      # A prediction says itself what it lacks.
      def check_needs(subject)
        if !subject.report.segments.any?(&:allocation_totals) && subject.asked[:predict].nil?
          raise UsageError, "--view gc-cost: no objects were followed in this recording; " \
                            "pitwall profile --allocations -- CMD does that"
        end
        super
      end
    end
  end
end
