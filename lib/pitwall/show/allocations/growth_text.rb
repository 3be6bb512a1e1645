# frozen_string_literal: true

require "pitwall/show/allocations/objects_text"
require "pitwall/show/findings/growth_words"
require "pitwall/show/profile/header_view"
require "pitwall/show/terminal/table"
require "pitwall/show/profile/text_report"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Places whose objects keep growing in number, as text.
    class ObjectGrowthText < ObjectsText
      HEADS = ["objects/min", "bytes/min", "grew by", "", "living", "of RSS", "over time"].freeze
      # Columns left out on a narrow terminal, in this order.
      GIVING_WAY = [5, 4, 3, 6].freeze
      private_constant :HEADS, :GIVING_WAY

      # @param unicode [Boolean] whether lines over time are drawn
      # @param options [Hash] of ObjectsText
      #: (Analyse::ObjectGrowth, Analyse::Summary, ?unicode: bool, **untyped) -> void
      def initialize(growth, summary, unicode: true, **options)
        super(summary, **options)
        @growth = growth
        @words = ObjectGrowthWords.new(growth)
        @unicode = unicode
      end

      private

      def header
        [*wrap(@words.collections), *@words.rss(spark: method(:spark)).flat_map { |line| wrap(line) },
         *losses(@growth.losses), *note("i", ObjectGrowthWords::RULE, :dim)]
      end

      def body
        rows = @growth.rows
        if rows.empty?
          return [*wrap(@growth.judged? ? ObjectGrowthWords::NOTHING : ObjectGrowthWords::UNKNOWN), *next_steps]
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
          lines << @palette.dim("#{Units.things(rows.size - shown.size, "more row")} (#{@hints.rows(rows.size)})")
        end

        lines + @words.released(shown).flat_map { |text| note("i", text, :dim) } + next_steps
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
    end
  end
end
