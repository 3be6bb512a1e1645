# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # What a method calls.
    class Callees < ReportView
      #: () -> String
      def name = "callees"

      #: () -> String
      def option = "--callees"

      #: () -> bool
      def of_a_name? = true

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--callees NAME", "what a method calls, recursion counted once") do |name|
          choose(options, callees: name)
        end
      end

      #: () -> bool
      def weighs? = true

      #: (Drawing) -> Array[String]
      def lines(drawing)
        Show::NeighboursView.new(**drawing.weighed)
                            .lines(:callees, *drawing.report.callees, limit: drawing.limit || ROWS)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "callees" => rows.neighbours(*rows.report.callees) }
    end
  end
end
