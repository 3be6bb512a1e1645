# frozen_string_literal: true

require "pitwall/show/history/words"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Plots a series by time in a terminal. A column is a result, or the median of neighbouring results. A line is the
    # level between two changes. The axis does not begin at 0, so that changes of a few percent are visible.
    class HistoryPlot
      HEIGHT = 12
      WIDEST = 72
      # point, level, change, axis
      SIGNS = ["●", "─", "┊", "│"].freeze
      ASCII = ["o", "-", ":", "|"].freeze
      private_constant :HEIGHT, :WIDEST, :SIGNS, :ASCII

      #: (Analyse::ResultSeries, width: Integer, palette: untyped, ?unicode: bool) -> void
      def initialize(one, width:, palette:, unicode: true)
        @one = one
        @width = width
        @palette = palette
        @signs = unicode ? SIGNS : ASCII
      end

      # The plot's lines; none with fewer than two results.
      #: () -> Array[String]
      def lines
        return [] if @one.points.size < 2

        labels = { 0 => high, HEIGHT - 1 => low }.transform_values { |number| label(number) }
        gutter = labels.values.map { |text| Text.width(text) }.max
        @columns = [@one.points.size, (@width - gutter - 3).clamp(8, WIDEST)].min
        rows = cells.each_with_index.map do |row, at|
          "#{@palette.dim(Text.right(labels.fetch(at, ""), gutter))} #{@palette.dim(@signs[3])}#{row.join}".rstrip
        end
        rows << foot(gutter)
      end

      private

      def label(number) = HistoryWords.value(number, @one.series[:unit])

      # Medians of the results of each column.
      def drawn
        @drawn ||= Array.new(@columns) do |column|
          values = @one.values[first(column)...[first(column + 1), first(column) + 1].max].sort
          values[values.size / 2]
        end
      end

      # Index of a column's first result.
      def first(column) = column * @one.points.size / @columns

      def column(index) = (0...@columns).find { |at| first(at + 1) > index } || (@columns - 1)

      def low = @low ||= @one.values.min
      def high = @high ||= @one.values.max

      def row(value)
        return HEIGHT / 2 if high == low

        ((high - value) / (high - low) * (HEIGHT - 1)).round.clamp(0, HEIGHT - 1)
      end

      def cells
        rows = Array.new(HEIGHT) { Array.new(@columns, " ") }
        changes = @one.changes.filter_map { |change| (at = @one.index(change)) && [column(at), change] }
        levels(changes).each do |from, to, level|
          (from...to).each { |at| rows[row(level)][at] = @palette.dim(@signs[1]) }
        end
        changes.each { |at, _| rows.each { |cells| cells[at] = @palette.dim(@signs[2]) } }
        drawn.each_with_index { |value, at| rows[row(value)][at] = @signs[0] }
        rows
      end

      # [first column, end, level] between changes.
      def levels(changes)
        return [] if changes.empty?

        ends = [0, *changes.map(&:first), @columns]
        values = [changes.first.last[:before], *changes.map { |_, change| change[:after] }]
        values.each_with_index.map { |level, at| [ends[at], ends[at + 1], level] }
      end

      def foot(gutter)
        times = @one.points.values_at(0, -1).map { |point| HistoryWords.time(point[:measured_at]).slice(0, 10) }
        gap = [@columns - times.sum(&:size), 1].max
        @palette.dim("#{" " * (gutter + 2)}#{times.join(" " * gap)}")
      end
    end
  end
end
