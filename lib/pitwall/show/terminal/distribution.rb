# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"
require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Draws histograms of the processes' medians: one line for each side, all on the same axis, with the median marked.
    # The axis leaves out far outliers, which would flatten the rest. A line below tells their number.
    class Distribution
      BLOCKS = %w[▁ ▂ ▃ ▄ ▅ ▆ ▇ █].freeze
      MEDIAN = "┃"
      FRAME = "│"
      ASCII_BLOCKS = %w[. : o O @].freeze
      ASCII_MEDIAN = "!"
      ASCII_FRAME = "|"
      # Labels take at most this part of the width: a quarter.
      LABELS = 4
      # Columns of the axis, at most. On a wider axis a few dozen values would leave most columns empty.
      WIDEST = 60
      private_constant :BLOCKS, :MEDIAN, :FRAME, :ASCII_BLOCKS, :ASCII_MEDIAN, :ASCII_FRAME, :LABELS, :WIDEST

      # @param unicode [Boolean] whether the terminal shows more than ASCII
      #: (width: Integer, palette: untyped, ?unicode: bool) -> void
      def initialize(width:, palette:, unicode: true)
        @width = width
        @palette = palette
        @unicode = unicode
      end

      # The histograms' lines.
      # @param series [Hash<String, Array<Numeric>>] label → values
      # @param styles [Hash<String, Symbol>] label → method of the palette
      # @param unit [String] the values' unit: "ns", "bytes" or "count"
      #: (Hash[String, Array[Numeric]], unit: String, ?styles: Hash[String, Symbol]) -> Array[String]
      def lines(series, unit:, styles: {})
        series = finite(series)
        return [] if series.empty?

        label = [series.keys.map { |name| Text.width(Text.safe(name)) }.max, @width / LABELS].min
        medians = series.transform_values { |values| Figures.value(middle(values), unit) }
        columns = [@width - label - 4 - medians.values.map { |text| Text.width(text) }.max, WIDEST].min
        columns = [columns, 8].max
        axis = axis(series.values)
        tallest = series.values.map { |values| counts(values, axis, columns).max }.max
        rows = series.map do |name, values|
          bars = bars(values, axis, columns, tallest, styles[name])
          "#{Text.left(Text.shorten_right(name, label), label)} #{frame}#{bars}#{frame} #{medians[name]}"
        end
        rows + [scale(axis, columns, label, unit)] + beyond(series, axis, label, unit)
      end

      # A histogram without colours and labels, for a table's cell.
      # @param columns [Integer] width of the cell
      #: (Array[Numeric], Integer) -> String
      def sparkline(values, columns)
        series = finite("" => values)
        return "" if series.empty?

        values = series.fetch("")
        axis = axis([values])
        bars = blocks(values, axis, columns, counts(values, axis, columns).max)
        bars[0] + (@unicode ? MEDIAN : ASCII_MEDIAN) + bars[1]
      end

      private

      def frame = @palette.dim(@unicode ? FRAME : ASCII_FRAME)

      def finite(series)
        sorted = series.transform_values { |values| values.select { |value| value.to_f.finite? }.sort }
        sorted.reject { |_, values| values.empty? }
      end

      # Lowest and highest value that is no far outlier.
      def axis(all)
        inner = all.flat_map do |values|
          low, high = Analyse::Statistics.far_out_fences(values)
          values.select { |value| value.between?(low, high) }
        end
        inner.minmax
      end

      def middle(values) = Analyse::Statistics.median(values)

      def column(value, axis, columns)
        low, high = axis
        return columns / 2 if high <= low

        ((value - low) / (high - low).to_f * (columns - 1)).round
      end

      def counts(values, axis, columns)
        counts = Array.new(columns, 0)
        values.each { |value| counts[column(value, axis, columns)] += 1 if value.between?(*axis) }
        counts
      end

      def bars(values, axis, columns, tallest, style)
        left, right = blocks(values, axis, columns, tallest).map do |text|
          style && !text.empty? ? @palette.public_send(style, text) : text
        end
        left + @palette.bold(@unicode ? MEDIAN : ASCII_MEDIAN) + right
      end

      # The histogram's text left and right of the median's mark.
      def blocks(values, axis, columns, tallest)
        blocks = @unicode ? BLOCKS : ASCII_BLOCKS
        drawn = counts(values, axis, columns).map do |count|
          count.zero? ? " " : blocks[(count * blocks.size / tallest.to_f).ceil - 1]
        end
        mark = column(middle(values).clamp(*axis), axis, columns)
        [drawn[0, mark].join, drawn[mark + 1..].join]
      end

      # The line below the histograms: the axis's lowest and highest value.
      def scale(axis, columns, label, unit)
        low, high = axis.map { |value| Figures.value(value, unit) }
        indent = " " * (label + 2)
        return (indent + @palette.dim(Text.left(" " * (columns / 2) + low, 0))).rstrip if axis[0] == axis[1]

        gap = columns - Text.width(low) - Text.width(high)
        text = gap.positive? ? low + " " * gap + high : Text.shorten_right("#{low} … #{high}", columns + 2)
        indent + @palette.dim(text)
      end

      # Lines that tell the number of outliers outside of the axis.
      def beyond(series, axis, label, unit)
        series.filter_map do |name, values|
          outside = values.reject { |value| value.between?(*axis) }
          next if outside.empty?

          ends = [outside.first, outside.last].uniq.map { |value| Figures.value(value, unit) }
          text = Text.safe("#{name}: #{outside.size} of #{values.size} outside this axis: #{ends.join(" … ")}")
          Text.wrap(text, @width - label - 2).map { |line| " " * (label + 2) + @palette.dim(line) }
        end.flatten
      end
    end
  end
end
