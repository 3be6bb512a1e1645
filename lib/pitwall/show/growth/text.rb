# frozen_string_literal: true

require "pitwall/show/findings/view"
require "pitwall/show/growth/words"
require "pitwall/show/profile/header_view"
require "pitwall/show/terminal/table"
require "pitwall/show/profile/text_report"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Which places' objects stay and keep growing, for people.
    class ObjectGrowthText
      TOP = 20
      HEADS = ["objects/min", "bytes/min", "grew by", "", "living", "of RSS", "over time"].freeze
      # Columns that give way on a narrow terminal.
      GIVING_WAY = [5, 4, 3, 6].freeze
      private_constant :TOP, :HEADS, :GIVING_WAY

      # @param file [String] the recording, for the hints
      #: (Analyse::ObjectGrowth, Analyse::Summary, file: String, **untyped) -> void
      def initialize(growth, summary, file:, limit: nil, width: 100, palette: Plain, base: nil, warnings: [], findings: [], unicode: true)
        @growth = growth
        @words = ObjectGrowthWords.new(growth)
        @summary = summary
        @file = file
        @limit = limit || TOP
        @width = [width, TextReport::NARROWEST].max
        @palette = palette
        @location = Location.new(base)
        @warnings = warnings
        @findings = findings
        @unicode = unicode
      end

      #: () -> String
      def to_s = [*header, *FindingsView.new(width: @width, palette: @palette).lines(@findings), "", *body].join("\n")

      private

      def header
        wrap(HeaderView.of_objects(@summary)).map { |line| @palette.bold(line) } + wrap(@words.looked) + @words.rss(spark: method(:spark)).flat_map { |line| wrap(line) } +
          (@warnings + @growth.losses).flat_map { |text| note("!", text, :yellow) } + note("i", ObjectGrowthWords::RULE, :dim)
      end

      def body
        rows = @growth.rows
        return [*wrap(@growth.judged? ? ObjectGrowthWords::NOTHING : ObjectGrowthWords::UNKNOWN), *hint(false)] if rows.empty?

        shown = rows.first(@limit)
        table = Table.new(heads: [*HEADS, "class"], width: @width, palette: @palette, location: @location, giving_way: GIVING_WAY)
        head, *lines = table.lines(shown.map { |row| Table::Row.new(numbers: numbers(row), name: row.class_name, place: [row.path, row.line]) })
        lines = [head] + lines.zip(shown).flat_map { |line, row| [line, *holders(row)] }
        lines << @palette.dim("#{Units.things(rows.size - shown.size, "more row")} (--limit #{rows.size} shows all)") if rows.size > shown.size
        lines + @words.released(shown).flat_map { |text| note("i", text, :dim) } + hint(true)
      end

      def numbers(row)
        bytes = ->(number) { number ? "+#{Units.bytes(number)}" : "" }
        ["+#{Units.count(ObjectGrowthWords.rounded(row.per_minute.point))}", bytes.call(row.bytes_per_minute), "+#{Units.count(row.objects)}", bytes.call(row.bytes),
         Units.count(row.living), row.rss_share ? "#{(row.rss_share * 100).round}%" : "", spark(row.series.map { |at_ns, low, high| [at_ns, (low + high) / 2] })]
      end

      def holders(row)
        ObjectGrowthWords.holders(row).flat_map { |text| Text.wrap(text, @width - 4).map { |line| @palette.dim("    #{line}") } }
      end

      def spark(points) = Sparkline.text(points, unicode: @unicode)

      def hint(growing)
        lines = ["pitwall report #{@file} --view allocations --retained"]
        lines << "pitwall allocations --growth --holders -- CMD" if growing && @growth.rows.none?(&:paths)
        lines << "pitwall compare #{@file} NEW.pit" if growing && @file.end_with?(".pit")
        ["", @palette.dim("Next: #{lines.first}"), *lines.drop(1).map { |line| @palette.dim("      #{line}") }]
      end

      def wrap(text) = Text.wrap(text, @width)

      def note(mark, text, style) = wrap("#{mark} #{text}").map { |line| @palette.public_send(style, line) }
    end
  end
end
