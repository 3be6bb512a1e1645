# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # The call tree from the root down.
    class Tree < ReportView
      # Rows, where no limit is asked for.
      ROWS = 200

      #: () -> String
      def name = "tree"

      #: () -> String
      def option = "--tree"

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on(option, "the call tree from the root down") { choose(options) }
      end

      #: () -> bool
      def weighs? = true

      # Long runs of other code's frames are one row, but where all frames are asked for.
      #: (Drawing) -> Array[String]
      def lines(drawing)
        result = drawing.report.top_down
        result = Analyse::Outline.folded(result) { |method| !mine?(drawing, method) } unless drawing.all_frames
        Show::TreeView.new(**drawing.look, weight: drawing.report.weight, bottom_up: false, hints: Hints)
                      .lines(result, limit: drawing.limit || ROWS)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "tree" => rows.outline(rows.report.top_down) }

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("flame", "Flame graph", place: 10), tab("tree", "Call tree", place: 20)]

      private

      def mine?(drawing, method) = drawing.report.query.origin.mine?(method)
    end
  end
end
