# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"
require "pitwall/analyse/recording/states"

module Pitwall
  module Show
    # Threads with their times, and what part of its wall time each spent in which state.
    class ThreadsView
      # @param waits [Boolean] whether wall times have in them what a thread waited; those of traced calls don't
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Integer, palette: untyped, location: Location, hints: untyped, ?waits: bool) -> void
      def initialize(width:, palette:, location:, hints:, waits: true)
        @hints = hints
        @waits = waits
        @width = width
        @palette = palette
        @location = location
      end

      #: (Array[Analyse::Threads::Row], ?limit: Integer?) -> Array[String]
      def lines(rows, limit: nil)
        shown = limit ? rows.first(limit) : rows
        states = shown.flat_map { |row| row.states.select { |_, wall| wall.positive? }.keys }.uniq.sort
        several = rows.map(&:pid).uniq.size > 1
        names = states.map { |state| Analyse::States[state].head }
        heads = [@waits ? "wall" : "wall without wait", "cpu", *names, "thread"]
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location)
        lines = table.lines(shown.map { |row| table_row(row, states, several) })
        return lines if shown.size == rows.size

        lines << @palette.dim("#{Units.things(rows.size - shown.size, "more thread")} (#{@hints.threads})")
      end

      private

      def table_row(row, states, several)
        shares = states.map { |state| Units.percent(row.states.fetch(state, 0), row.wall) }
        numbers = [Units.duration(row.wall), Units.duration(row.cpu), *shares]
        name = row.name.empty? ? "thread #{row.id}" : row.name
        Table::Row.new(numbers: numbers, name: several ? "#{row.pid} #{name}" : name)
      end
    end
  end
end
