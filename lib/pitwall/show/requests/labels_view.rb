# frozen_string_literal: true

require "pitwall/show/requests/counter_columns"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The program's time by the values of one label, e.g. by route.
    class LabelsView
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Numeric, palette: untyped, location: Location, hints: untyped) -> void
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
        counters = requests ? LabelsView.counters(labels, shown) : []
        numbers = ["share", "wall", "cpu", *(["requests", "mean"] if requests)]
        heads = [*numbers, *counters.map { |name| CounterColumns.head(name) }]
        table = Table.new(heads: [*heads, labels.name], width: @width, palette: @palette, location: @location,
                          giving_way: (numbers.size...heads.size).to_a.reverse)
        lines = table.lines(shown.map { |row| table_row(row, total, requests, counters) })
        lines << @palette.dim(Units.things(rows.size - shown.size, "more value")) if shown.size < rows.size
        lines.concat(notes(counters).map { |line| @palette.dim(line) })
        others = labels.names - [labels.name]
        if others.any?
          lines.push("", @palette.dim("other labels: #{others.map { |name| @hints.label(name) }.join(", ")}"))
        end

        lines
      end

      # Names of counters of the VM's caches that increased in a row.
      #: (Analyse::Labels, Array[Analyse::Labels::Row]) -> Array[String]
      def self.counters(labels, rows)
        labels.counters.select do |name|
          rows.any? { |row| (sum = row.counters&.[](name)) && sum.works.positive? && sum.increase.positive? }
        end
      end

      private

      def notes(counters)
        return [] if counters.empty?

        mean = "mean of a request (Ruby's counters: of those that ran alone)"
        Text.wrap("#{mean}: #{CounterColumns.legend(counters)}", @width)
      end

      def table_row(row, total, requests, counters)
        numbers = [row.value ? Units.percent(row.wall, total) : "", Units.duration(row.wall), Units.duration(row.cpu)]
        if requests
          mean = Units.duration(row.request_ns / row.requests) if row.requests&.positive?
          numbers += mean ? [Units.count(row.requests), mean] : ["", ""]
        end
        numbers.concat(counters.map { |name| mean_of(row.counters[name]) })
        Table::Row.new(numbers: numbers, name: row.value || "(without)", style: (:dim unless row.value))
      end

      def mean_of(sum) = sum&.works&.positive? ? Units.mean(sum.increase, sum.works) : ""
    end
  end
end
