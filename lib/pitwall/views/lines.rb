# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # Lines of a file or a method with their source, else the heaviest lines.
    class Lines < ReportView
      #: () -> String
      def name = "lines"

      #: () -> String
      def option = "--lines"

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--lines NAME", "lines of a file or a method, with their source") do |name|
          choose(options, within: name)
        end
      end

      #: () -> bool
      def weighs? = true

      # All lines of what is asked for.
      #: (Drawing) -> Array[String]
      def lines(drawing)
        limit = drawing.limit || (ROWS unless drawing.report.query.within)
        Show::LinesView.new(**drawing.weighed).lines(drawing.report.lines, limit: limit, source: drawing.source)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "lines" => rows.lines }

      # Programs have read it before callers since the first version.
      #: () -> Numeric
      def field_place = Views.named("callers").field_place - 0.1

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("source", "Source", place: 40)]

      # @raise [UsageError]
      #: (Subject) -> void
      def check(subject)
        super
        return unless subject.weighing.of_calls?

        asked = subject.asked[:within] ? option : "--view lines"
        raise UsageError, "#{asked}: calls have no lines; pitwall profile -- CMD samples them, " \
                          "and --callees NAME has what a method calls"
      end
    end
  end
end
