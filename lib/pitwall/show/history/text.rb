# frozen_string_literal: true

require "pitwall/show/history/plot"
require "pitwall/show/history/words"
require "pitwall/show/terminal/sparkline"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # A project's history in the terminal: a table of its series, plots, or its change points.
    class HistoryText
      SPARK = 16
      private_constant :SPARK

      # @param all number of series before a limit
      #: (
      #    Array[Analyse::ResultSeries], project: String, all: Integer, width: Integer, palette: untyped, ?unicode: bool
      #  ) -> void
      def initialize(found, project:, all:, width:, palette:, unicode: true)
        @found = found
        @project = project
        @all = all
        @width = width
        @palette = palette
        @unicode = unicode
      end

      # One line for each series.
      #: () -> String
      def table
        heads = ["results", "newest", "last change", "p", "since", "trend", *host_head, "case and metric"]
        rows = @found.map { |one| row(one) }
        [head, "", *grid(heads, rows), *more].join("\n")
      end

      # One plot for each series, with its changes.
      #: () -> String
      def plots
        parts = @found.map do |one|
          plot = HistoryPlot.new(one, width: @width, palette: @palette, unicode: @unicode)
          title = "#{HistoryWords.name(one)}, host #{HistoryWords.host(one.series[:host_id])}: " \
                  "#{Units.things(one.points.size, "result")}, newest #{value(one, one.newest[:value])}"
          sentences = one.changes.map { |change| Text.shorten_right("  #{sentence(one, change)}", @width) }
          [Text.shorten_right(title, @width), *plot.lines, *sentences]
        end
        [head, *parts.flat_map { |lines| ["", *lines] }, *more].join("\n")
      end

      # One line for each change, the newest first. A second line has the commit, and the Rubies if they differ.
      #: () -> String
      def changes
        pairs = @found.flat_map { |one| one.changes.map { |change| [one, change] } }
        return "Project #{Text.safe(@project)}: no change points" if pairs.empty?

        pairs = pairs.sort_by { |one, change| [change[:measured_at], one.name] }.reverse
        heads = ["since", "before", "after", "change", "p", *host_head, "case and metric"]
        top, *lines = grid(heads, pairs.map { |one, change| change_row(one, change) })
        causes = pairs.map { |one, change| HistoryWords.cause(one, change) }
        lines = lines.zip(causes).flat_map { |line, cause| [line, *(@palette.dim("  #{cause}") unless cause.empty?)] }
        [head, "", top, *lines, *more].join("\n")
      end

      private

      def head
        host = ", host #{HistoryWords.host(hosts.first)}" if hosts.size == 1
        "Project #{Text.safe(@project)}#{host}: #{Units.count(@all)} series"
      end

      def hosts = @found.map { |one| one.series[:host_id] }.uniq

      # The hosts have a column where there are several.
      def host_head = hosts.size > 1 ? ["host"] : []
      def host_cell(one) = hosts.size > 1 ? [HistoryWords.host(one.series[:host_id])] : []

      def more = @all > @found.size ? ["", "… #{Units.count(@all - @found.size)} more"] : []

      def row(one)
        change = one.last_change
        [Units.count(one.series[:count]), value(one, one.newest[:value]),
         change ? HistoryWords.change(change[:ratio]) : "", change ? HistoryWords.doubt(change[:p_value]) : "",
         change ? HistoryWords.time(change[:measured_at]).slice(0, 10) : "", spark(one),
         *host_cell(one), HistoryWords.name(one)]
      end

      # From the lowest value to the highest: relative to 0 a change of some percent would not be seen.
      def spark(one)
        low, high = one.values.minmax
        floor = low - ((high - low) / 7.0)
        points = one.values.each_with_index.map { |number, at| [at, number - floor] }
        Sparkline.text(points, columns: SPARK, unicode: @unicode)
      end

      def change_row(one, change)
        [HistoryWords.time(change[:measured_at]), value(one, change[:before]), value(one, change[:after]),
         HistoryWords.change(change[:ratio]), HistoryWords.doubt(change[:p_value]),
         *host_cell(one), HistoryWords.name(one)]
      end

      def sentence(one, change)
        cause = HistoryWords.cause(one, change)
        "#{HistoryWords.time(change[:measured_at])}  #{value(one, change[:before])} → #{value(one, change[:after])}, " \
          "#{HistoryWords.change(change[:ratio])}, p #{HistoryWords.doubt(change[:p_value])}" \
          "#{": #{cause}" unless cause.empty?}"
      end

      def value(one, number) = HistoryWords.value(number, one.series[:unit])

      # Right-aligned columns, then the last one, which is cut at the terminal's edge.
      def grid(heads, rows)
        widths = heads.each_index.map { |at| [heads, *rows].map { |row| Text.width(row[at]) }.max }
        [heads, *rows].each_with_index.map do |row, at|
          cells = row[0..-2].zip(widths).map { |cell, width| Text.right(cell, width) }
          room = [@width - widths[0..-2].sum { |width| width + 2 }, 12].max
          text = [*cells, Text.shorten_right(Text.safe(row.last), room)].join("  ").rstrip
          at.zero? ? @palette.dim(text) : text
        end
      end
    end
  end
end
