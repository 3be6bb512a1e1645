# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The heaviest lines of source, each with its text where it was given.
    class LinesView
      #: (weight: Symbol, total: Integer, width: Integer, palette: untyped, location: Location) -> void
      def initialize(weight:, total:, width:, palette:, location:, hints:)
        @hints = hints
        @weight = weight
        @total = total
        @width = width
        @palette = palette
        @location = location
      end

      # @param source [#call, #commit] (path, line) → the line's text, or nil where it is not known; path → the commit
      #   that a file's text is from, nil where the file has not changed
      #: (Array[Analyse::Lines::Row], ?limit: Integer?, ?source: untyped) -> Array[String]
      def lines(rows, limit: nil, source: nil)
        shown = limit ? rows.first(limit) : rows
        table = Table.new(heads: ["self", @weight.to_s, "total", "total #{@weight}", "line"],
                          width: @width, palette: @palette, location: @location)
        texts = shown.map { |row| source&.call(row.path, row.line) }
        indent = nil
        table.lines(shown.map { |row| table_row(row) }).flat_map.with_index do |line, at|
          indent ||= line[/\A.*line\z/] ? Text.width(line) - 4 : 4
          text = at.positive? ? texts[at - 1] : nil
          next [line] unless text

          [line, "#{" " * indent}  #{@palette.cyan(Text.shorten_right(text.strip, @width - indent - 2))}"]
        end + rest(rows, shown) + changed(shown.map(&:path).uniq, source)
      end

      private

      def changed(paths, source)
        return [] unless source

        paths.group_by { |path| source.commit(path) }.reject { |commit, _| commit.nil? }.flat_map do |commit, files|
          names = files.map { |path| @location.text(path, 0) }
          text = "Changed since the recording, shown as of commit #{commit[0, 10]}: #{names.join(", ")}"
          Text.wrap(text, @width).map { |line| @palette.dim(line) }
        end
      end

      def table_row(row)
        name = row.line.zero? ? "(no line)" : @location.text(row.path, row.line)
        numbers = [row.own, row.total].flat_map { |sum| [Units.percent(sum, @total), Units.value(sum, @weight)] }
        Table::Row.new(numbers: numbers, name: name)
      end

      def rest(rows, shown)
        return [] if rows.size == shown.size

        share = Units.percent(rows.drop(shown.size).sum(&:own), @total)
        [@palette.dim("#{share} in #{Units.things(rows.size - shown.size, "more line")} (#{@hints.rows(rows.size)})")]
      end
    end
  end
end
