# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Methods with what ruby-prof shows of them: total, self, wait, child and calls.
    class CallsView
      # @param hints [Views::Hints] options that notes suggest
      #: (weight: Symbol, width: Integer, palette: untyped, location: Location, hints: untyped) -> void
      def initialize(weight:, width:, palette:, location:, hints:)
        @hints = hints
        @weight = weight
        @width = width
        @palette = palette
        @location = location
      end

      # @param total [Integer] the self times of all methods
      # @param limit [Integer, nil] rows shown; the rest is counted
      #: (Array[Analyse::CallTimes::Row], total: Integer, ?limit: Integer?) -> Array[String]
      def lines(rows, total:, limit: nil)
        shown = limit ? rows.first(limit) : rows
        waits = shown.any? { |row| row.wait.positive? }
        table = Table.new(heads: ["self%", "total", "self", *("wait" if waits), "child", "calls", "method"],
                          width: @width, palette: @palette, location: @location)
        lines = table.lines(shown.map { |row| table_row(row, total, waits) })
        rest = rows.drop(shown.size)
        return lines if rest.empty?

        more = "#{Units.percent(rest.sum(&:own), total)} in #{Units.things(rest.size, "more method")}"
        lines << @palette.dim("#{more} (#{@hints.rows(rows.size)})")
      end

      private

      def table_row(row, total, waits)
        times = [row.total, row.own, *(row.wait if waits), row.child].map { |time| Units.value(time, @weight) }
        Table::Row.new(numbers: [Units.percent(row.own, total), *times, Units.count(row.calls)], name: row.method.name,
                       place: row.method.where)
      end
    end
  end
end
