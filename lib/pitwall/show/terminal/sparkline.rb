# frozen_string_literal: true

module Pitwall
  module Show
    # Draws a value over time in a table's cell: one block for each part of the time, from 0 to the highest value.
    module Sparkline
      BLOCKS = %w[▁ ▂ ▃ ▄ ▅ ▆ ▇ █].freeze
      ASCII = %w[_ . - = + * # @].freeze
      COLUMNS = 12
      private_constant :BLOCKS, :ASCII, :COLUMNS

      module_function

      # The sparkline; "" without two points or without any value above 0.
      # @param points [Array<Array(Integer, Numeric)>] [time, value], ordered by time
      # @param columns [Integer] width of the cell
      #: (Array[[Integer, Numeric]], ?columns: Integer, ?unicode: bool) -> String
      def text(points, columns: COLUMNS, unicode: true)
        return "" if points.size < 2

        first, last = points.first[0], points.last[0]
        highest = points.map(&:last).max
        return "" if highest.zero? || last == first

        blocks = unicode ? BLOCKS : ASCII
        at = 0
        Array.new(columns) do |column|
          ends = first + ((last - first) * (column + 1) / columns)
          at += 1 while at + 1 < points.size && points[at + 1][0] <= ends
          blocks[(points[at][1] * (blocks.size - 1)).fdiv(highest).round]
        end.join
      end
    end
  end
end
