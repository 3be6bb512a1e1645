# frozen_string_literal: true

require "pitwall/show/findings/view"
require "pitwall/show/growth/words"
require "pitwall/show/profile/header_view"
require "pitwall/show/terminal/table"
require "pitwall/show/profile/text_report"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Places whose objects keep growing in number, as text.
    class ObjectGrowthText
      TOP = 20 # rows of the table, by default
      HEADS = ["objects/min", "bytes/min", "grew by", "", "living", "of RSS", "over time"].freeze
      # Columns left out on a narrow terminal, in this order.
      GIVING_WAY = [5, 4, 3, 6].freeze
      private_constant :TOP, :HEADS, :GIVING_WAY

      # @param file [String] the recording, for the hints
      #: (Analyse::ObjectGrowth, Analyse::Summary, file: String, **untyped) -> void
      def initialize(growth, summary, file:, limit: nil, width: 100, palette: Plain, base: nil, warnings: [],
                     findings: [], unicode: true)
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

      # The report's text, without a newline at its end.
      #: () -> String
      def to_s = [*header, *FindingsView.new(width: @width, palette: @palette).lines(@findings), "", *body].join("\n")

      private

      def header
        title = wrap(HeaderView.of_objects(@summary)).map { |line| @palette.bold(line) }
        [*title, *wrap(@words.collections), *@words.rss(spark: method(:spark)).flat_map { |line| wrap(line) },
         *(@warnings + @growth.losses).flat_map { |text| note("!", text, :yellow) },
         *note("i", ObjectGrowthWords::RULE, :dim)]
      end

      def body
        rows = @growth.rows
        if rows.empty?
          return [*wrap(@growth.judged? ? ObjectGrowthWords::NOTHING : ObjectGrowthWords::UNKNOWN), *hint(false)]
        end

        shown = rows.first(@limit)
        table = Table.new(heads: [*HEADS, "class"], width: @width, palette: @palette, location: @location,
                          giving_way: GIVING_WAY)
        table_rows = shown.map do |row|
          Table::Row.new(numbers: numbers(row), name: row.class_name, place: [row.path, row.line])
        end
        head, *lines = table.lines(table_rows)
        lines = [head] + lines.zip(shown).flat_map { |line, row| [line, *holders(row)] }
        if rows.size > shown.size
          lines << @palette.dim("#{Units.things(rows.size - shown.size, "more row")} (--limit #{rows.size} shows all)")
        end

        lines + @words.released(shown).flat_map { |text| note("i", text, :dim) } + hint(true)
      end

      def numbers(row)
        bytes = ->(number) { number ? "+#{Units.bytes(number)}" : "" }
        points = row.series.map { |at_ns, low, high| [at_ns, (low + high) / 2] }
        ["+#{Units.count(ObjectGrowthWords.rounded(row.per_minute.point))}", bytes.call(row.bytes_per_minute),
         "+#{Units.count(row.objects)}", bytes.call(row.bytes), Units.count(row.living),
         row.rss_share ? "#{(row.rss_share * 100).round}%" : "", spark(points)]
      end

      def holders(row)
        ObjectGrowthWords.holders(row).flat_map do |text|
          Text.wrap(text, @width - 4).map { |line| @palette.dim("    #{line}") }
        end
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
