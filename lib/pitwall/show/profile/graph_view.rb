# frozen_string_literal: true

require "pitwall/show/profile/graph_lines"
require "pitwall/show/profile/tree_view"
require "pitwall/show/terminal/table"

module Pitwall
  module Show
    # The call graph: a block of lines for each symbol, its callers above it, its callees below it. All shares are of
    # the whole.
    class GraphView
      LEGEND = "↑ callers, ↓ callees. Shares are of the whole; recursion counts once. " \
               "places: lines (or native functions) that call."
      # Columns that name and place keep before number columns are left out.
      NAME = 30
      private_constant :NAME

      # @param hints [Views::Hints] options that notes suggest
      # @param least [Integer] callers and callees with less weight are summed up
      #: (weight: Symbol, total: Integer, width: Integer, palette: untyped, location: Location, hints: untyped,
      #:  least: Integer) -> void
      def initialize(weight:, total:, width:, palette:, location:, hints:, least:)
        @hints = hints
        @weight = weight
        @total = total
        @width = width
        @palette = palette
        @location = location
        @least = least
      end

      # All symbols.
      # @param limit [Integer] symbols shown
      #: (Analyse::Graph, limit: Integer) -> Array[String]
      def lines(graph, limit:)
        shown = graph.first(limit)
        return dimmed(empty(graph)) if shown.empty?

        blocks = shown.map { |row| GraphLines.of(row, least: @least) }
        head, *body = table(blocks.flatten)
        apart = blocks.flat_map { |block| [*body.shift(block.size), ""] }
        [*dimmed(LEGEND), "", head, *apart[0..-2], *notes(graph, shown.size)]
      end

      # One symbol with every place that calls it, and the chains of its callers.
      # @param limit [Integer] rows of the chains
      #: (Analyse::SymbolGraph, limit: Integer) -> Array[String]
      def of(symbol, limit:)
        row = symbol.row
        head = [title(symbol.methods), *Text.wrap(totals(row), @width)]
        return head if row.total.zero?

        chains = TreeView.new(weight: @weight, width: @width, palette: @palette, location: @location, bottom_up: true,
                              hints: @hints)
        [*head, "", *table(GraphLines.of(row, least: @least, apart: true)), "", @palette.bold("Chains of callers"),
         *chains.lines(symbol.chains, limit: limit)]
      end

      private

      def dimmed(text) = Text.wrap(text, @width).map { |line| @palette.dim(line) }

      # The head, and a line for each.
      def table(lines)
        calls = lines.any?(&:calls)
        heads = ["of all", "self", Units.sum_name(@weight), "places", *("calls" if calls), "symbol"]
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location, giving_way: [3, 2],
                          name: NAME)
        table.lines(lines.map { |line| table_row(line, calls) })
      end

      def table_row(line, calls)
        numbers = [Units.percent(line.total, @total), line.own ? Units.percent(line.own, @total) : "",
                   Units.value(line.total, @weight), Units.count(line.places)]
        numbers << (line.calls ? Units.count(line.calls) : "") if calls
        lead, style = line.sign.empty? ? ["", :bold] : ["  #{line.sign}", nil]
        Table::Row.new(numbers: numbers, name: line.name, place: line.place, lead: lead, style: style)
      end

      def title(methods)
        first = methods.first
        name = Text.shorten(first.name, @width)
        name += " and #{methods.size - 1} more of that name" if methods.size > 1
        place = @location.fit(*first.where, @width - Text.width(name) - 2)
        "#{@palette.bold(Text.shorten_right(name, @width))}#{"  #{@palette.dim(place)}" unless place.empty?}"
      end

      def totals(row)
        return "no #{@weight} in the part asked for" if row.total.zero?

        called = "called #{Units.things(row.calls, "time")}, " if row.calls
        "#{Units.value(row.total, @weight)}, #{called}from #{Units.things(row.places, "place")}: " \
          "#{GraphLines.sum(row, @total, least: @least)}; recursion counts once"
      end

      def notes(graph, shown)
        more = graph.size - shown
        notes = [*("#{Units.things(more, "more symbol")} (#{@hints.rows(graph.size)})" if more.positive?),
                 *(below(graph) if graph.hidden.positive?)]
        notes.empty? ? [] : ["", *notes.flat_map { |note| dimmed(note) }]
      end

      def below(graph)
        "#{Units.things(graph.hidden, "symbol")} below #{Units.percent(@least, @total)} (#{@hints.threshold})"
      end

      def empty(graph)
        graph.hidden.zero? ? "no symbol with #{@weight}" : "every symbol is below the threshold: #{below(graph)}"
      end
    end
  end
end
