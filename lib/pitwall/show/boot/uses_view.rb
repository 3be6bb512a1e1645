# frozen_string_literal: true

require "pitwall/show/boot/words"
require "pitwall/show/terminal/location"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # The part of a boot's report about gems and files that were not used after the boot. There is no such part where
    # uses were not recorded.
    class BootUsesView
      ROWS = 10 # of each table
      KILLED = "a process was killed: uses of its last second may be missing"
      private_constant :ROWS, :KILLED

      #: (Analyse::Boot, ?location: Location, ?limit: Integer) -> void
      def initialize(boot, location: Location.new, limit: ROWS)
        @boot = boot
        @uses = boot.uses
        @location = location
        @limit = limit
      end

      # @param hint [String] how to see rows that are left out
      #: (width: Integer, palette: untyped, hint: String) -> Array[String]
      def lines(width:, palette:, hint:)
        return [] unless @uses.known?

        tables = lists.flat_map do |title, rows|
          table = Table.new(heads: [*heads(title), title], width: width, palette: palette, location: @location,
                            giving_way: [*2...heads(title).size].reverse + [1], cut: :shorten_left, name: 44)
          shown = rows.first(@limit).map do |row|
            Table::Row.new(numbers: numbers(row, title), name: @location.text(row.name, 0), place: row.place)
          end
          left = rows.size - shown.size
          more = left.positive? ? Text.wrap("#{Units.count(left)} more (#{hint})", width) : []
          [*table.lines(shown), *more.map { |line| palette.dim(line) }, ""]
        end
        [palette.bold("Never used afterwards"), *notes.flat_map { |note| Text.wrap(note, width) },
         *(tables.empty? ? [""] : tables)]
      end

      #: () -> Array[String]
      def markdown
        return [] unless @uses.known?

        tables = lists.flat_map do |title, rows|
          found = rows.first(@limit).map do |row|
            [*numbers(row, title), Markdown.code(@location.text(row.name, 0)),
             Markdown.code(@location.text(*row.place))]
          end
          at = heads(title).size
          [*Markdown.table([*heads(title), title, "asked for by"], found, left: [at, at + 1]), ""]
        end
        ["**Never used afterwards.** #{Markdown.text(notes.join(" "))}", "", *tables]
      end

      # `used` of the JSON object, with all files; nil: uses were not recorded.
      #: () -> Hash[String, untyped]?
      def json
        return unless @uses.known?

        { "counts" => @uses.counts.transform_keys(&:to_s), "killed" => @uses.killed?,
          "gems" => @uses.gems.map { |row| object("name", row).merge("files" => row.files) },
          "files" => @uses.unused_files.map { |row| object("path", row) } }
      end

      private

      def lists = { "gem" => @uses.gems, "file" => @uses.files_of_used }.reject { |_, rows| rows.empty? }

      def heads(title)
        ["self", "objects", *("calls" if @boot.calls?), *("files" if title == "gem")]
      end

      def numbers(row, title)
        [Units.duration(row.own_ns), Units.count(row.objects), *(Units.count(row.calls) if @boot.calls?),
         *(Units.count(row.files) if title == "gem")]
      end

      def notes
        counts = @uses.counts
        ["#{Units.things(counts[:unused], "file")} of #{Units.count(counts.values_at(:unused, :used).sum)}: no " \
         "method or block of these ran after they were loaded. " \
         "#{Units.things(counts[:unknown], "file")} can't be told: they define no method, " \
         "load compiled code, or are scripts.",
         *("#{KILLED.capitalize}." if @uses.killed?)]
      end

      def object(key, row)
        { key => row.name, "self_ns" => row.own_ns, "objects" => row.objects, "calls" => row.calls,
          "saving_ns" => @uses.saving_ns(row.node), "from" => row.place[0], "line" => row.place[1] }
      end
    end
  end
end
