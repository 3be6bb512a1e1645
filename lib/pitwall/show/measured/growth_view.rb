# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/measured/effect_words"
require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/plot"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # The growth of a benchmark case with N: the order of growth in a sentence, the figures for each N, and a plot.
    class GrowthView
      NAME = 14 # columns of a head, at most
      private_constant :NAME

      # @param unicode [Boolean] whether the terminal shows more than ASCII
      #: (width: Integer, palette: untyped, ?unicode: bool) -> void
      def initialize(width:, palette:, unicode: true)
        @width = width
        @palette = palette
        @unicode = unicode
      end

      # The view's lines.
      #: (Analyse::Sweep) -> Array[String]
      def lines(sweep)
        plot = plot(sweep)
        [*sentences(sweep), *table(sweep), *(plot.empty? ? [] : ["", *plot])]
      end

      # The plot's lines.
      #: (Analyse::Sweep) -> Array[String]
      def plot(sweep)
        fits = [[sweep.fit_name || sweep.name, sweep.fit, :green],
                *(sweep.base && [[sweep.base_name || "base", sweep.base, :red]])]
        series = fits.map do |name, fit, style|
          Plot::Series.new(name: name, points: fit.points.map { |point| [point.n, point.time.point] },
                           style: fits.size > 1 ? style : nil,
                           curve: fit.points.select(&:fitted).map { |point| [point.n, point.fitted] })
        end
        plot = Plot.new(width: @width, palette: @palette, unicode: @unicode)
        plot.lines(series, x: sweep.parameter || "N", y: "time")
      end

      # A sentence for each version, "join: grows with n …", and a sentence that compares the versions.
      #: (Analyse::Sweep) -> Array[String]
      def self.sentences(sweep)
        fits = [[sweep.base_name, sweep.base], [sweep.fit_name, sweep.fit]].select(&:last)
        lines = fits.map { |name, fit| [sweep.name, *(name if fits.size > 1)].join(", ") + ": #{fit.sentence}" }
        lines << sweep.against.sentence if sweep.against
        lines
      end

      # Heads and cells of the table, for any format.
      #: (Analyse::Sweep) -> [Array[String], Array[Array[String]]]
      def self.cells(sweep)
        level = sweep.fit.points.filter_map { |point| EffectWords.level(point.time) if point.time.interval? }.uniq
        heads = [sweep.parameter || "N", *(sweep.against && (sweep.base_name || "base")),
                 sweep.against && sweep.fit_name ? sweep.fit_name : "time",
                 level.size == 1 ? "#{level.first} interval" : "interval", "per item",
                 *(sweep.against && "speed-up")]
        seconds = sweep.against.to_h.fetch(:rows, []).to_h { |row| [row.n, row] }
        rows = sweep.fit.points.map do |point|
          second = seconds[point.n]
          [Units.count(point.n), *(sweep.against && time(second&.base&.point)), time(point.time&.point),
           interval(point.time), time(point.per_item&.point), *(sweep.against && factor(second&.speed_up))]
        end
        [heads, rows]
      end

      class << self
        private

        def time(value) = Figures.value(value, "ns")

        def interval(estimate) = estimate&.interval? ? "#{time(estimate.low)} … #{time(estimate.high)}" : ""

        def factor(estimate) = Figures.times(estimate)
      end

      private

      def sentences(sweep)
        GrowthView.sentences(sweep).each_with_index.flat_map do |text, at|
          Text.wrap(text, @width).map { |line| at.zero? ? @palette.bold(line) : line }
        end
      end

      def table(sweep)
        heads, rows = GrowthView.cells(sweep)
        speeds = sweep.against.to_h.fetch(:rows, []).to_h { |row| [Units.count(row.n), row.speed_up] }
        styles = rows.map { |row| { 5 => style(speeds[row.first]) }.compact }
        heads = heads.map { |head| Text.shorten(head, NAME) }
        Columns.new(heads: heads, width: @width, palette: @palette, right: [0]).lines(rows, styles: styles)
      end

      def style(speed)
        return unless Figures.sized?(speed)
        return :green if speed.low > 1

        speed.high < 1 ? :red : :dim
      end
    end
  end
end
