# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # A table of a name and short cells. On a narrow terminal the names are shortened first. When that is not enough,
    # each row becomes a few lines: the name, and below it the cells with their heads.
    class Columns
      GAP = "  "
      # Width of a name below which names are not shortened further.
      NAME = 12
      private_constant :GAP, :NAME

      # @param heads [Array<String>] heads of the name and of the cells
      # @param width [Integer] columns of the terminal
      # @param left [Array<Integer>] indexes of left-aligned cells (words, not numbers)
      # @param right [Array<Integer>] [0] where the name is right-aligned (a number)
      # @param name [Integer] width below which names are not shortened further
      #: (heads: Array[String], width: Integer, palette: untyped, ?left: Array[Integer], ?right: Array[Integer],
      #:  ?name: Integer) -> void
      def initialize(heads:, width:, palette:, left: [], right: [], name: NAME)
        @heads = heads
        @width = width
        @palette = palette
        @left = [0, *left] - right
        @name = name
      end

      # The table's lines, the heads first.
      # @param rows [Array<Array<String>>] the cells of each row; "" for an empty cell
      # @param styles [Array<Hash<Integer, Symbol>>] for each row: cell's index → method of the palette, e.g. :red
      #: (Array[Array[String]], ?styles: Array[Hash[Integer, Symbol]]) -> Array[String]
      def lines(rows, styles: [])
        rows = rows.map { |row| row.map { |cell| Text.safe(cell) } }
        cells = @heads.each_index.map do |at|
          ([@heads[at]] + rows.map { |row| row[at] }).map { |cell| Text.width(cell) }.max
        end
        name = @width - cells.drop(1).sum { |cell| cell + GAP.size }
        return stacked(rows, styles) if name < [cells[0], @name].min

        cells[0] = [cells[0], name].min
        lines = rows.each_with_index.map { |row, at| line(row, cells, styles[at] || {}) }
        [@palette.dim(line(@heads, cells, {})), *lines]
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
