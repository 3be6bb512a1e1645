# frozen_string_literal: true

require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Plots points and fitted curves over N in a terminal, on logarithmic axes.
    # On these axes a power of N is a straight line, and its slope is the exponent.
    # A point is a sign of one cell; a curve is drawn with braille dots, eight for each cell.
    # So points and curves differ without colours too.
    # (The gem unicode_plot is not used: its last release was in 2021, and it needs a C extension.)
    class Plot
      # points, curve: Arrays of [x, y]; style: method of the palette
      Series = Struct.new(:name, :points, :curve, :style, keyword_init: true)

      HEIGHT = 14 # rows of the plot
      WIDEST = 72 # columns of the plot, at most: more don't make it clearer
      SIGNS = %w[● ○ ◆ ◇].freeze
      ASCII_SIGNS = %w[o x + #].freeze
      # Bit of a braille dot, by [row][column] in its cell. Source: Unicode, block "Braille Patterns" (U+2800).
      DOTS = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]].freeze
      TICKS = 6 # labels of an axis, at most
      private_constant :HEIGHT, :WIDEST, :SIGNS, :ASCII_SIGNS, :DOTS, :TICKS

      # Maps values to 0..1.
      Axis = Struct.new(:low, :high, :logarithmic) do
        # The axis for some values.
        # @param least [Float] minimum of high / low on a logarithmic axis, so that noise doesn't fill the whole height
        #: (Array[Numeric], logarithmic: bool, ?least: Float) -> Axis
        def self.around(values, logarithmic:, least: 1.0)
          low, high = values.minmax
          return new([low, 0].min, high.positive? ? high : 1.0, false) unless logarithmic

          wider = Math.sqrt([least * low / high.to_f, 1.0].max)
          new(low / wider, high * wider, true)
        end

        # The value's position on the axis: 0 at `low`, 1 at `high`.
        #: (Numeric) -> Float
        def place(value)
          return (value - low) / (high - low).to_f unless logarithmic

          Math.log(value / low.to_f) / Math.log(high / low.to_f)
        end

        # Round numbers between the axis's ends.
        # @param most [Integer] upper limit of their number
        #: (Integer) -> Array[Float]
        def ticks(most)
          fine = logarithmic ? [[1, 2, 5], [1, 5], [1]].map { |digits| decades(digits) } : []
          decades = logarithmic ? decades([1]) : []
          coarse = (2..16).map { |step| decades.each_slice(step).map(&:first) }
          ([*fine, *coarse].find { |ticks| ticks.size.between?(2, most) } || even(most)).map { |tick| tick.round(12) }
        end

        private

        # Multiples of powers of ten: [1, 5] → 1, 5, 10, 50, 100…
        def decades(digits)
          powers = Math.log10(low).floor..Math.log10(high).ceil
          powers.flat_map { |power| digits.map { |digit| digit * 10.0**power } }.select do |tick|
            tick.between?(low, high)
          end
        end

        # Numbers at equal distances: 0, 2.5, 5…
        def even(most)
          rough = (high - low) / [most - 1, 1].max.to_f
          power = 10.0**Math.log10(rough).floor
          step = [1, 2, 2.5, 5, 10].map { |digit| digit * power }.find { |candidate| candidate >= rough }
          ((low / step).ceil..(high / step).floor).map { |count| count * step }
        end
      end
      private_constant :Axis

      # @param unicode [Boolean] whether the terminal shows more than ASCII
      #: (width: Integer, palette: untyped, ?unicode: bool) -> void
      def initialize(width:, palette:, unicode: true)
        @width = width
        @palette = palette
        @unicode = unicode
      end

      # The plot's lines. None when all points have the same x.
      # @param x [String] title of the horizontal axis
      # @param y [String] title of the vertical axis
      # @param unit [String] unit of y: "ns", "bytes" or "count"
      #: (Array[Series], x: String, y: String, ?unit: String) -> Array[String]
      def lines(series, x:, y:, unit: "ns")
        series = series.map do |one|
          Series.new(name: one.name, points: finite(one.points), curve: finite(one.curve.to_a), style: one.style)
        end
        points = series.flat_map(&:points)
        return [] if points.map(&:first).uniq.size < 2

        logarithmic = points.flatten.all?(&:positive?)
        across = Axis.around(points.map(&:first), logarithmic: logarithmic)
        up = Axis.around(points.map(&:last), logarithmic: logarithmic, least: 4.0)
        labels = up.ticks(TICKS).to_h { |tick| [tick, label(tick, unit)] }
        gutter = labels.values.map { |text| Text.width(text) }.max.to_i
        columns = (@width - gutter - 2).clamp(8, WIDEST)
        cells = draw(series, across, up, columns)
        title = Text.shorten_right(logarithmic ? "#{y} (both axes logarithmic)" : y, [@width - gutter - 1, 8].max)
        ["#{" " * gutter} #{@palette.dim(title)}", *rows(cells, labels, up, gutter),
         *foot(across, columns, gutter, x), *legend(series)]
      end

      private

      def finite(points) = points.select { |point| point.all? { |value| value && value.to_f.finite? } }

      # All cells of the plot: [row, column] → sign and style.
      def draw(series, across, up, columns)
        cells = {}
        series.each do |one|
          curve(one, across, up, columns).each do |cell, dots|
            cells[cell] ||= [@unicode ? (0x2800 + dots).chr(Encoding::UTF_8) : ".", :dim]
          end
        end
        signs = @unicode ? SIGNS : ASCII_SIGNS
        # The first series is drawn last, so it is visible where two series share a cell.
        series.each_with_index.reverse_each do |one, at|
          one.points.each do |x, y|
            cells[[HEIGHT - 1 - cell(up, y, HEIGHT), cell(across, x, columns)]] = [signs[at % signs.size], one.style]
          end
        end
        cells
      end

      # Index of a value's row or column.
      def cell(axis, value, size) = (axis.place(value) * (size - 1)).round.clamp(0, size - 1)

      # A curve's cells: [row, column] → bits of its braille dots.
      def curve(one, across, up, columns)
        dots = Hash.new(0)
        one.curve.each_cons(2) do |(from_x, from_y), (to_x, to_y)|
          next unless [from_y, to_y].all? { |y| !up.logarithmic || y.positive? }

          from, to = [[from_x, from_y], [to_x, to_y]].map do |x, y|
            [across.place(x) * (columns * 2 - 1), up.place(y) * (HEIGHT * 4 - 1)]
          end
          steps = [(to[0] - from[0]).abs, (to[1] - from[1]).abs, 1].max.ceil
          (0..steps).each do |step|
            column, row = 2.times.map { |at| (from[at] + (to[at] - from[at]) * step / steps).round }
            row = HEIGHT * 4 - 1 - row
            next unless column.between?(0, columns * 2 - 1) && row.between?(0, HEIGHT * 4 - 1)

            dots[[row / 4, column / 2]] |= DOTS[row % 4][column % 2]
          end
        end
        dots
      end

      def rows(cells, labels, up, gutter)
        named = labels.to_h { |tick, text| [HEIGHT - 1 - cell(up, tick, HEIGHT), text] }
        by_row = cells.group_by { |(row, _), _| row }
        HEIGHT.times.map do |row|
          axis = named[row] ? (@unicode ? "┤" : "+") : (@unicode ? "│" : "|")
          label = Text.right(named[row].to_s, gutter)
          "#{@palette.dim(label)} #{@palette.dim(axis)}#{line(by_row.fetch(row, []))}".rstrip
        end
      end

      def line(cells)
        at = 0
        cells.sort_by(&:first).map do |(_, column), (sign, style)|
          gap = " " * (column - at)
          at = column + 1
          gap + (style ? @palette.public_send(style, sign) : sign)
        end.join
      end

      # The horizontal axis, its labels and its title.
      def foot(across, columns, gutter, x)
        ticks = across.ticks([TICKS, columns / 9].min.clamp(2, TICKS))
        rule = (@unicode ? "─" : "-") * columns
        names = " " * (columns + 1)
        ticks.each do |tick|
          column = cell(across, tick, columns)
          text = label(tick, "count")
          from = [column - text.size / 2, 0].max.clamp(0, [columns - text.size, 0].max)
          next unless names[[from - 1, 0].max, text.size + 2].to_s.strip.empty?

          rule[column] = @unicode ? "┬" : "+"
          names[from, text.size] = text
        end
        indent = " " * (gutter + 2)
        axis = "#{" " * gutter} #{@unicode ? "└" : "+"}#{rule}"
        names = names.rstrip
        room = columns - names.size
        beside = Text.width(x) + 2 <= room
        [@palette.dim(axis), @palette.dim(indent + (beside ? "#{names}  #{Text.safe(x)}" : names)),
         *(beside ? [] : [@palette.dim(indent + Text.shorten_right(x, columns))])]
      end

      def legend(series)
        return [] if series.size < 2

        signs = @unicode ? SIGNS : ASCII_SIGNS
        series.each_with_index.map do |one, at|
          Text.shorten_right("#{signs[at % signs.size]} #{one.name}".rstrip, @width)
        end
      end

      # A label's number without trailing zeros: labels are round numbers, not measured values.
      def label(number, unit)
        text = Figures.value(number, unit, figures: 3)
        text.sub(/\A([\d,]+\.\d*?)0+(?=\D|\z)/, '\1').sub(/\.(?=\D|\z)/, "")
      end
    end
  end
end
