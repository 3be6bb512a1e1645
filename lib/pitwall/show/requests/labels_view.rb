# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Time by the values of one label.
    class LabelsView
      #: (width: Integer, palette: untyped, location: Location) -> void
      def initialize(width:, palette:, location:)
        @width = width
        @palette = palette
        @location = location
      end

      #: (Analyse::Labels, ?limit: Integer?) -> Array[String]
      def lines(labels, limit: nil)
        return ["no labels were recorded: Pitwall.label(route: \"…\") { … } sets them (doc/servers.md)"] if labels.name.nil?

        rows = labels.rows
        total = labels.labelled
        requests = rows.any? { |row| row.requests&.positive? }
        shown = limit ? rows.first(limit) : rows
        table = Table.new(heads: ["share", "wall", "cpu", *(["requests", "mean"] if requests), labels.name], width: @width, palette: @palette, location: @location)
        lines = table.lines(shown.map { |row| table_row(row, total, requests) })
        lines << @palette.dim(Units.things(rows.size - shown.size, "more value")) if shown.size < rows.size
        others = labels.names - [labels.name]
        lines.push("", @palette.dim("other labels: #{others.map { |name| "--label-key #{name}" }.join(", ")}")) if others.any?
        lines
      end

      private

      def table_row(row, total, requests)
        numbers = [row.value ? Units.percent(row.wall, total) : "", Units.duration(row.wall), Units.duration(row.cpu)]
        numbers += row.requests&.positive? ? [Units.count(row.requests), Units.duration(row.request_ns / row.requests)] : ["", ""] if requests
        Table::Row.new(numbers: numbers, name: row.value || "(without)", style: (:dim unless row.value))
      end
    end
  end
end
