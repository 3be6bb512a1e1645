# frozen_string_literal: true

require "pitwall/show/history/plot"
require "pitwall/show/history/words"
require "pitwall/show/terminal/sparkline"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # A project's history in the terminal: a table of its series, plots, or its change points.
    class HistoryText
      SPARK = 16
      # Columns that names keep, if they need as many, before other columns are left out.
      NAME = 24
      # Columns that are left out on a narrow terminal, the first one first.
      GIVING_WAY = %w[results p trend before since].freeze
      private_constant :SPARK, :NAME, :GIVING_WAY

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
          facts = "host #{HistoryWords.host(one.series[:host_id])}: #{Units.things(one.points.size, "result")}, " \
                  "newest #{value(one, one.newest[:value])}"
          sentences = one.changes.flat_map { |change| indented(sentence(one, change)) }
          [Text.shorten_middle(HistoryWords.name(one), @width), @palette.dim(Text.shorten_right(facts, @width)),
           *plot.lines, *sentences]
        end
        [head, *parts.flat_map { |lines| ["", *lines] }, *more].join("\n")
      end

      # One line for each change, the newest first. More lines have the host where there are several, the commit, and
      # the Rubies if they differ.
      #: () -> String
      def changes
        pairs = @found.flat_map { |one| one.changes.map { |change| [one, change] } }
        return "Project #{Text.safe(@project)}: no change points" if pairs.empty?

        pairs = pairs.sort_by { |one, change| [change[:measured_at], one.name] }.reverse
        heads = ["since", "before", "after", "change", "p", "case and metric"]
        top, *lines = grid(heads, pairs.map { |one, change| change_row(one, change) })
        lines = lines.zip(pairs).flat_map do |line, (one, change)|
          more = [*host_words(one), *HistoryWords.causes(one, change)].join(", ")
          [line, *indented(more) { |text| @palette.dim(text) }]
        end
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
      def host_words(one) = host_cell(one).map { |id| "host #{id}" }

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
         HistoryWords.change(change[:ratio]), HistoryWords.doubt(change[:p_value]), HistoryWords.name(one)]
      end

      def sentence(one, change)
        ["since #{HistoryWords.time(change[:measured_at])}: #{value(one, change[:before])} → " \
         "#{value(one, change[:after])}", HistoryWords.change(change[:ratio]),
         "p #{HistoryWords.doubt(change[:p_value])}", *HistoryWords.causes(one, change)].join(", ")
      end

      def value(one, number) = HistoryWords.value(number, one.series[:unit])

      # The lines of a text, none of an empty one.
      def indented(text)
        lines = text.empty? ? [] : Text.wrap(text, @width - 2)
        lines.map { |line| block_given? ? yield("  #{line}") : "  #{line}" }
      end

      # Right-aligned columns, then the name, which is cut at the terminal's edge.
      def grid(heads, rows)
        longest = rows.map { |row| Text.width(Text.safe(row.last)) }.max || 0
        table = Table.new(heads: heads, width: @width, palette: @palette, location: nil, cut: :shorten_middle,
                          giving_way: GIVING_WAY.filter_map { |head| heads.index(head) }, name: [longest, NAME].min)
        table.lines(rows.map { |row| Table::Row.new(numbers: row[0..-2], name: row.last) })
      end
    end
  end
end
