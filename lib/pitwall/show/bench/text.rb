# frozen_string_literal: true

require "pitwall/show/terminal/ascii"
require "pitwall/show/bench/words"
require "pitwall/show/terminal/columns"
require "pitwall/show/terminal/distribution"
require "pitwall/show/measured/growth_view"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/plain"

module Pitwall
  module Show
    # The report of `pitwall bench` as text: speed, memory, which case is faster, growth with N, and warnings.
    class BenchText
      # Smallest width: fewer columns don't hold the numbers.
      NARROWEST = 40
      # Columns of the histogram beside the figures. The histogram is left out where fewer are free.
      SPARK = (8..28).freeze
      # Columns of a case's name, at least, when there is a histogram.
      NAME = 24
      # Columns of a metric's name, at least.
      METRIC = 28
      private_constant :SPARK, :NAME, :METRIC

      # @param unicode [Boolean] whether the terminal shows more than ASCII
      #: (Analyse::BenchReport, ?width: Integer, ?palette: untyped, ?unicode: bool) -> void
      def initialize(report, width: 100, palette: Plain, unicode: true)
        @report = report
        @words = BenchWords.new(report)
        @unicode = unicode
        @width = [width, NARROWEST].max - (unicode ? 0 : Ascii::GROWTH)
        @palette = palette
        @foot = Provenance.new(width: @width, palette: palette)
      end

      # The report's text, without a newline at its end.
      #: () -> String
      def to_s
        parts = [title, speed, memory, caches, *commands, *rankings, undecided, *growths,
                 @foot.warnings(@report), made, command]
        text = parts.reject(&:empty?).map { |lines| lines.join("\n") }.join("\n\n")
        @unicode ? text : Ascii.of(text)
      end

      private

      def title
        return wrap("Nothing was measured", :yellow) if @report.summaries.empty?

        Text.wrap(@words.title, @width).map { |line| @palette.bold(line) }
      end

      def speed
        heads, rows = @words.speed
        return [] if rows.empty?

        room = room_beside(heads, rows)
        if room >= SPARK.first
          drawing = Distribution.new(width: @width, palette: @palette, unicode: @unicode)
          rows = rows.zip(@words.cases).map do |row, one|
            row + [drawing.sparkline(one.batch_values.to_a, [room, SPARK.last].min)]
          end
          heads += ["batches"]
        end
        columns(heads, rows, left: [4])
      end

      def room_beside(heads, rows)
        widths = heads.zip(*rows).map { |cells| cells.map { |cell| Text.width(Text.safe(cell)) }.max }
        @width - [widths.first, NAME].min - widths.drop(1).sum - widths.size * 2
      end

      def memory
        heads, rows = @words.memory
        rows.empty? ? [] : columns(heads, rows)
      end

      def caches
        heads, rows = @words.caches
        rows.empty? ? [] : columns(heads, rows)
      end

      def commands
        @words.commands.map do |one|
          heads, rows = @words.command(one)
          drawing = Distribution.new(width: @width, palette: @palette, unicode: @unicode)
          name = Text.shorten_right("#{one.name} (#{Units.things(one.processes, "run")})", @width)
          [@palette.bold(name), *columns(heads, rows, name: METRIC),
           *drawing.lines({ "wall" => one.process_values.to_a }, unit: "ns")]
        end
      end

      def rankings
        @report.rankings.map do |title, ranked|
          heads, rows, effects = @words.ranking(title, ranked)
          styles = effects.map do |effect|
            effect ? { 2 => EffectWords.style(effect), 4 => EffectWords.style(effect) } : { 4 => :dim }
          end
          columns(heads, rows, left: [4], styles: styles)
        end
      end

      def undecided = @words.undecided.flat_map { |text| wrap(text, :yellow) }

      def growths
        view = GrowthView.new(width: @width, palette: @palette, unicode: @unicode)
        @report.growths.to_a.map { |sweep| view.lines(sweep) }
      end

      def made = @foot.facts({ "made of" => @words.made, **@words.facts, "host" => Provenance.host(@report.host) })

      def command
        lines = @foot.command(@report.command)
        lines.empty? ? [] : [@palette.dim("Again:"), *lines]
      end

      def columns(heads, rows, left: [], styles: [], **more)
        Columns.new(heads: heads, width: @width, palette: @palette, left: left, **more).lines(rows, styles: styles)
      end

      def wrap(text, style) = Text.wrap(text, @width).map { |line| @palette.public_send(style, line) }
    end
  end
end
