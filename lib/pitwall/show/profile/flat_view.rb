# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The flat table: methods by self weight.
    class FlatView
      # Shares from which a row stands out.
      HOT = 0.2
      WARM = 0.05
      # Columns of methods and places.
      NAME = 32
      private_constant :HOT, :WARM, :NAME

      # @param also [Symbol, nil] a further weight whose self value stands beside
      # @param hints [Views::Hints] options that notes suggest
      #: (weight: Symbol, total: Integer, width: Integer, palette: untyped, location: Location, **untyped) -> void
      def initialize(weight:, total:, width:, palette:, location:, hints:, also: nil)
        @hints = hints
        @weight = weight
        @total = total
        @width = width
        @palette = palette
        @location = location
        @also = also
      end

      # @param rows [Array<Analyse::Flat::Row>] the heaviest first; those without any of the weight are not shown
      # @param limit [Integer, nil] rows shown; the rest is counted
      #: (Array[Analyse::Flat::Row], ?limit: Integer?) -> Array[String]
      def lines(rows, limit: nil)
        rows = rows.reject { |row| row.total.zero? }
        shown = limit ? rows.first(limit) : rows
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location,
                          giving_way: [3, 4].first(heads.size - 4), name: NAME)
        lines = table.lines(shown.map { |row| table_row(row) })
        rest = rows.drop(shown.size)
        return lines if rest.empty?

        weight = rest.sum(&:own)
        more = "#{Units.percent(weight, @total)} in #{Units.things(rest.size, "more method")}"
        lines << @palette.dim("#{more} (#{@hints.rows(rows.size)})")
      end

      private

      def heads
        ["self", @weight.to_s, "total", "total #{@weight}", *(@also && ["self #{@also}"]), "method"]
      end

      def table_row(row)
        numbers = [Units.percent(row.own, @total), Units.value(row.own, @weight), Units.percent(row.total, @total),
                   Units.value(row.total, @weight)]
        numbers << Units.value(row.also.fetch(@also), @also) if @also
        place = row.method.where
        Table::Row.new(numbers: numbers, name: row.method.name, place: place, style: style(row.own))
      end

      def style(own)
        share = @total.zero? ? 0 : own.fdiv(@total)
        share >= HOT ? :red : (:yellow if share >= WARM)
      end
    end
  end
end
