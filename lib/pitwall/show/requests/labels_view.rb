# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The program's time by the values of one label, e.g. by route.
    class LabelsView
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Integer, palette: untyped, location: Location, hints: untyped) -> void
      def initialize(width:, palette:, location:, hints:)
        @hints = hints
        @width = width
        @palette = palette
        @location = location
      end

      # The view's lines.
      #: (Analyse::Labels, ?limit: Integer?) -> Array[String]
      def lines(labels, limit: nil)
        if labels.name.nil?
          return ["no labels were recorded: Pitwall.label(route: \"…\") { … } sets them (doc/servers.md)"]
        end

        rows = labels.rows
        total = labels.labelled
        requests = rows.any? { |row| row.requests&.positive? }
        shown = limit ? rows.first(limit) : rows
        table = Table.new(heads: ["share", "wall", "cpu", *(["requests", "mean"] if requests), labels.name],
                          width: @width, palette: @palette, location: @location)
        lines = table.lines(shown.map { |row| table_row(row, total, requests) })
        lines << @palette.dim(Units.things(rows.size - shown.size, "more value")) if shown.size < rows.size
        others = labels.names - [labels.name]
        if others.any?
          lines.push("", @palette.dim("other labels: #{others.map { |name| @hints.label(name) }.join(", ")}"))
        end

        lines
      end

      private

      def table_row(row, total, requests)
        numbers = [row.value ? Units.percent(row.wall, total) : "", Units.duration(row.wall), Units.duration(row.cpu)]
        if requests
          mean = Units.duration(row.request_ns / row.requests) if row.requests&.positive?
          numbers += mean ? [Units.count(row.requests), mean] : ["", ""]
        end
        Table::Row.new(numbers: numbers, name: row.value || "(without)", style: (:dim unless row.value))
      end
    end
  end
end
