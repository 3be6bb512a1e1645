# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # Who calls a method.
    class Callers < ReportView
      #: () -> String
      def name = "callers"

      #: () -> String
      def option = "--callers"

      #: () -> bool
      def of_a_name? = true

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--callers NAME", "who calls a method, recursion counted once") do |name|
          choose(options, callers: name)
        end
      end

      #: () -> bool
      def weighs? = true

      #: (Drawing) -> Array[String]
      def lines(drawing)
        Show::NeighboursView.new(**drawing.weighed)
                            .lines(:callers, *drawing.report.callers, limit: drawing.limit || ROWS)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "callers" => rows.neighbours(*rows.report.callers) }
    end
  end
end
