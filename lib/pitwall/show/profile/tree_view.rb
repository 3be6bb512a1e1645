# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The call tree, from the root down or from the leaves up. Only where ways part does the tree move to the right: a
    # Rails stack is 150 calls deep before it gets interesting. `↳` stands before the only way on.
    class TreeView
      # @param hints [Views::Hints] options that notes suggest
      #: (weight: Symbol, width: Integer, palette: untyped, location: Location, bottom_up: bool, hints: untyped) -> void
      def initialize(weight:, width:, palette:, location:, bottom_up:, hints:)
        @hints = hints
        @weight = weight
        @width = width
        @palette = palette
        @location = location
        @bottom_up = bottom_up
      end

      # @param result [Analyse::Outline::Result]
      # @param limit [Integer, nil] rows shown
      #: (Analyse::Outline::Result, ?limit: Integer?) -> Array[String]
      def lines(result, limit: nil)
        shown = limit ? result.rows.first(limit) : result.rows
        leads = leads(result.rows)
        @calls = !@bottom_up && result.rows.any? { |row| row.also&.positive? }
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location)
        lines = table.lines(shown.each_with_index.map { |row, at| table_row(row, leads[at], result.total) })
        lines.concat(hidden(result, result.rows.size - shown.size))
      end

      private

      def heads
        return ["share", @weight.to_s, "method, and below it who called it"] if @bottom_up

        ["total", "self", Units.sum_name(@weight), *("calls" if @calls), "method"]
      end

      def table_row(row, lead, total)
        numbers = [Units.percent(row.total, total)]
        numbers << (row.own.zero? ? "" : Units.percent(row.own, total)) unless @bottom_up
        numbers << Units.value(row.total, @weight)
        numbers << Units.count(row.also) if @calls
        Table::Row.new(numbers: numbers, name: row.method.name, lead: lead, place: row.method.where,
                       style: (:bold if row.depth.zero? || row.children != 1))
      end

      # Guides before each name.
      def leads(rows)
        below = [] # by row: what its children start with
        left = rows.map(&:children)
        most = @width / 3
        rows.map.with_index do |row, at|
          parent = row.parent
          if parent.nil?
            below[at] = ""
            next ""
          end

          left[parent] -= 1
          lead = if rows[parent].children == 1
                   below[at] = below[parent]
                   "#{below[parent]}↳ "
                 else
                   below[at] = below[parent] + (left[parent].zero? ? "   " : "│  ")
                   "#{below[parent]}#{left[parent].zero? ? "└─ " : "├─ "}"
                 end
          lead.size > most ? "#{row.depth}…#{lead[-(most - 6)..]}" : lead
        end
      end

      def hidden(result, more)
        left_out = result.hidden + result.rows.sum(&:hidden)
        notes = []
        all = @hints.threshold
        if @bottom_up
          share = Units.percent(result.hidden, result.total)
          notes << "#{share} is in methods below the threshold (#{all})" if result.hidden.positive?
        elsif left_out.positive?
          share = Units.percent(left_out, result.total)
          notes << "#{share} of the weight is in rows below the threshold (#{all})"
        end
        shows = @hints.rows(result.rows.size, more == 1 ? "it" : "them")
        notes << "#{Units.things(more, "more row")} (#{shows})" if more.positive?
        notes.flat_map { |note| Text.wrap(note, @width) }.map { |note| @palette.dim(note) }
      end
    end
  end
end
