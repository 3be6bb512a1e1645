# frozen_string_literal: true

require "pitwall/show/profile/graph_lines"
require "pitwall/show/terminal/location"
require "pitwall/show/terminal/markdown"

module Pitwall
  module Show
    # The call graph as Markdown, for pull requests and issues: of all symbols, or of the one asked for.
    class GraphMarkdown
      #: (Analyse::Report, ?base: String?, ?warnings: Array[String], ?limit: Integer) -> void
      def initialize(report, base: nil, warnings: [], limit: 20)
        @report = report
        @location = Location.new(base)
        @warnings = warnings
        @limit = limit
      end

      # The report as Markdown.
      #: () -> String
      def to_s
        summary = @report.summary
        head = [Markdown.text(summary.programs.join(", ")), Markdown.text(summary.rubies.join(", "))].reject(&:empty?)
        body = @report.query.symbol ? of_symbol : of_all
        [head.join(" · "), "", *@warnings.flat_map { |warning| ["> #{Markdown.text(warning)}", ""] }, *body].join("\n")
      end

      private

      def of_all
        graph = @report.graph
        shown = graph.first(@limit)
        more = graph.size - shown.size
        notes = [*("#{Units.things(more, "more symbol")}." if more.positive?),
                 *("#{Units.things(graph.hidden, "symbol")} below the threshold." if graph.hidden.positive?)]
        lines = shown.flat_map { |row| GraphLines.of(row, least: @report.least) }
        [*table(lines), "", ["↑ callers, ↓ callees; recursion counts once.", *notes].join(" ")]
      end

      def of_symbol
        symbol = @report.symbol_graph
        sum = Markdown.text(GraphLines.sum(symbol.row, @report.total, least: symbol.least))
        return [Markdown.code(symbol.row.method.name)] if symbol.row.total.zero?

        ["#{Markdown.code(symbol.row.method.name)}: #{sum}", "",
         *table(GraphLines.of(symbol.row, least: symbol.least, apart: true))]
      end

      def table(lines)
        calls = lines.any?(&:calls)
        heads = ["of all", "self", @report.weight.to_s, "places", *("calls" if calls), "symbol", "where"]
        Markdown.table(heads, lines.map { |line| cells(line, calls) }, left: [heads.size - 2, heads.size - 1])
      end

      def cells(line, calls)
        whole = @report.total
        name = Markdown.code(line.name)
        [Units.percent(line.total, whole), line.own ? Units.percent(line.own, whole) : "",
         Units.value(line.total, @report.weight), Units.count(line.places),
         *((line.calls ? Units.count(line.calls) : "") if calls),
         line.sign.empty? ? "**#{name}**" : "#{line.sign}#{name}",
         line.place ? Markdown.code(@location.text(*line.place)) : ""]
      end
    end
  end
end
