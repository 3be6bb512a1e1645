# frozen_string_literal: true

require "pitwall/views/tree"

module Pitwall
  module Views
    # Methods by self weight, each with its callers.
    class BottomUp < ReportView
      #: () -> String
      def name = "bottom-up"

      #: () -> String
      def option = "--bottom-up"

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on(option, "methods by self weight, each with its callers") { choose(options) }
      end

      #: () -> bool
      def weighs? = true

      #: (Drawing) -> Array[String]
      def lines(drawing)
        Show::TreeView.new(**drawing.look, weight: drawing.report.weight, bottom_up: true, hints: Hints)
                      .lines(drawing.report.bottom_up, limit: drawing.limit || Tree::ROWS)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "bottom_up" => rows.outline(rows.report.bottom_up) }
    end
  end
end
