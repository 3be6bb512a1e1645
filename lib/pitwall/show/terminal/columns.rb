# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # A table that begins with a name and goes on with short cells. The name gives way first; where even that is not enough, each
    # row becomes a few lines: the name, and below it the cells with their heads.
    class Columns
      GAP = "  "
      # Columns a name keeps.
      NAME = 12
      private_constant :GAP, :NAME

      # @param heads [Array<String>] of the name, then of the cells
      # @param left [Array<Integer>] places of cells that are words, not numbers
      # @param right [Array<Integer>] [0] where the name is a number
      # @param name [Integer] columns a name keeps, if it needs them
      #: (heads: Array[String], width: Integer, palette: untyped, ?left: Array[Integer], ?right: Array[Integer], ?name: Integer) -> void
      def initialize(heads:, width:, palette:, left: [], right: [], name: NAME)
        @heads = heads
        @width = width
        @palette = palette
        @left = [0, *left] - right
        @name = name
      end

      # @param rows [Array<Array<String>>] cells; one that has no text is left empty
      # @param styles [Array<Hash<Integer, Symbol>>] of each row: place → method of the palette
      #: (Array[Array[String]], ?styles: Array[Hash[Integer, Symbol]]) -> Array[String]
      def lines(rows, styles: [])
        rows = rows.map { |row| row.map { |cell| Text.safe(cell) } }
        cells = @heads.each_index.map { |at| ([@heads[at]] + rows.map { |row| row[at] }).map { |cell| Text.width(cell) }.max }
        name = @width - cells.drop(1).sum { |cell| cell + GAP.size }
        return stacked(rows, styles) if name < [cells[0], @name].min

        cells[0] = [cells[0], name].min
        [@palette.dim(line(@heads, cells, {}))] + rows.each_with_index.map { |row, at| line(row, cells, styles[at] || {}) }
      end

      private

      def line(row, cells, styles)
        last = row.rindex { |cell| !cell.empty? } || 0
        row[0..last].each_with_index.map do |cell, at|
          cell = Text.shorten(cell, cells[at]) if at.zero?
          room = " " * [cells[at] - Text.width(cell), 0].max
          painted = paint(cell, styles[at])
          next room + painted unless @left.include?(at)

          at == last ? painted : painted + room
        end.join(GAP)
      end

      def stacked(rows, styles)
        rows.each_with_index.flat_map do |row, index|
          painting = styles[index] || {}
          filled = row.each_index.drop(1).reject { |at| row[at].empty? }
          items = filled.map { |at| ["#{@heads[at]} #{row[at]}".strip, painting[at]] }
          [paint(Text.shorten(row[0], @width), painting[0]), *flow(items)]
        end
      end

      def flow(items)
        lines = []
        room = 0
        items.each do |text, style|
          text = Text.shorten_right(text, @width - 2)
          if lines.any? && Text.width(text) + 3 <= room
            lines.last << " · " << paint(text, style)
            room -= Text.width(text) + 3
          else
            lines << +"  #{paint(text, style)}"
            room = @width - 2 - Text.width(text)
          end
        end
        lines
      end

      def paint(text, style) = style && !text.empty? ? @palette.public_send(style, text) : text
    end
  end
end
