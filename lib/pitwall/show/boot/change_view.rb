# frozen_string_literal: true

require "pitwall/show/boot/words"
require "pitwall/show/terminal/location"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # The difference of two boots: figures of both, then files that only one of them loads, and those whose time
    # changed.
    class BootChangeView
      ROWS = 12 # of each list
      TITLES = { new: "Loaded only by B", gone: "Loaded only by A", both: "Changed most" }.freeze
      DOUBT = "Numbers of files and folders are exact. One boot of each says little about times: measure them with " \
              "compare of two sides and a command."
      private_constant :ROWS, :TITLES, :DOUBT

      # @param base [String] name of A
      # @param side [String] name of B
      #: (Analyse::Boot::Change, base: String, side: String, ?location: Location) -> void
      def initialize(change, base:, side:, location: Location.new)
        @change = change
        @base = base
        @side = side
        @location = location
      end

      #: (width: Integer, palette: untyped) -> Array[String]
      def lines(width:, palette:)
        table = Table.new(heads: ["A", "B", "difference", "of the whole boot"], width: width, palette: palette,
                          location: @location)
        rows = figures.map { |name, *numbers| Table::Row.new(numbers: numbers, name: name, place: nil) }
        [*Text.wrap("A: #{@base}, B: #{@side}", width), "", *table.lines(rows), *lists(width, palette), "",
         *Text.wrap(DOUBT, width).map { |line| palette.dim(line) }]
      end

      #: () -> String
      def markdown
        lists = TITLES.flat_map do |side, title|
          found = @change.of(side)
          next [] if found.empty?

          rows = found.first(ROWS).map do |row|
            [*numbers(row), Markdown.code(@location.text(row.path, 0)), Markdown.code(@location.text(*row.from))]
          end
          ["", "**#{title}** (#{Units.count(found.size)})", "",
           *Markdown.table(["A", "B", "difference", "file", "asked for by"], rows, left: [3, 4])]
        end
        [Markdown.text("A: #{@base}, B: #{@side}"), "",
         *Markdown.table(["of the whole boot", "A", "B", "difference"], figures), *lists, "", DOUBT].join("\n")
      end

      # The `boot` object of the JSON report, with all files.
      #: () -> Hash[String, untyped]
      def json
        files = @change.rows.map do |row|
          { "path" => row.path, "kind" => row.kind, "side" => row.side.to_s, "self_ns" => row.wall,
            "objects" => row.objects, "from" => row.from[0], "line" => row.from[1] }
        end
        { "base" => @base, "side" => @side, "figures" => @change.figures.transform_keys(&:to_s), "files" => files }
      end

      private

      # [name, of A, of B, difference]
      def figures
        @change.figures.map do |name, (a, b)|
          [name.to_s.tr("_", " "), *[a, b].map { |value| BootWords.figure(value, name) }, signed(b - a, name)]
        end
      end

      def signed(number, name)
        return "=" if number.zero?

        "#{number.positive? ? "+" : "-"}#{BootWords.figure(number.abs, name)}"
      end

      def numbers(row)
        [*row.wall.map { |ns| ns ? Units.duration(ns) : "" }, signed(row.wall_change, :wall)]
      end

      def lists(width, palette)
        TITLES.flat_map do |side, title|
          found = @change.of(side)
          next [] if found.empty?

          table = Table.new(heads: %w[A B self file], width: width, palette: palette, location: @location,
                            cut: :shorten_left, giving_way: [0, 1])
          rows = found.first(ROWS).map do |row|
            Table::Row.new(numbers: numbers(row), name: @location.text(row.path, 0), place: row.from)
          end
          ["", palette.bold("#{title}: #{Units.things(found.size, "file")}"), *table.lines(rows)]
        end
      end
    end
  end
end
