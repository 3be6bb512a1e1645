# frozen_string_literal: true

require "pitwall/show/allocations/objects_markdown"
require "pitwall/show/terminal/markdown"
require "pitwall/show/findings/growth_words"

module Pitwall
  module Show
    # Growing objects as Markdown, for pull requests and issues.
    class ObjectGrowthMarkdown < ObjectsMarkdown
      HEADS = ["objects/min", "99% interval", "bytes/min", "grew by", "bytes", "living", "of RSS", "over time",
               "what"].freeze
      private_constant :HEADS

      # @param options [Hash] of ObjectsMarkdown
      #: (Analyse::ObjectGrowth, Analyse::Summary, **untyped) -> void
      def initialize(growth, summary, **options)
        super(summary, **options)
        @growth = growth
        @words = ObjectGrowthWords.new(growth)
      end

      # The report as Markdown.
      #: () -> String
      def to_s
        rss = @words.rss(spark: Sparkline.method(:text)).flat_map { |line| [line, ""] }
        notes = (@warnings + @growth.losses).flat_map { |note| ["> #{Markdown.text(note)}", ""] }
        rule = "#{ObjectGrowthWords::RULE.sub(/\A\w/, &:upcase)}."
        [headline(@words.collections), "", *rss, *Markdown.findings(@findings), *notes, *body, "", rule].join("\n")
      end

      private

      def body
        rows = @growth.rows
        return [@growth.judged? ? ObjectGrowthWords::NOTHING : ObjectGrowthWords::UNKNOWN] if rows.empty?

        lines = Markdown.table(HEADS, rows.first(@limit).map { |row| cells(row) }, left: [7, 8])
        lines.concat(more(rows))
        held = rows.first(@limit).flat_map do |row|
          ObjectGrowthWords.holders(row).map do |text|
            "- #{Markdown.code(@location.text(row.path, row.line))} #{Markdown.text(text)}"
          end
        end
        lines += ["", *held] if held.any?
        lines + @words.released(rows.first(@limit)).flat_map { |text| ["", "#{Markdown.text(text)}."] }
      end

      def cells(row)
        rate = row.per_minute
        bytes = ->(number) { number ? "+#{Units.bytes(number)}" : "" }
        counts = [rate.point, rate.low, rate.high].map do |number|
          number && Units.count(ObjectGrowthWords.rounded(number))
        end
        points = row.series.map { |at_ns, low, high| [at_ns, (low + high) / 2] }
        ["+#{counts[0]}", rate.interval? ? "#{counts[1]} … #{counts[2]}" : "", bytes.call(row.bytes_per_minute),
         "+#{Units.count(row.objects)}", bytes.call(row.bytes), Units.count(row.living),
         row.rss_share ? "#{(row.rss_share * 100).round}%" : "", Sparkline.text(points),
         "#{Markdown.code(row.class_name)} #{Markdown.code(@location.text(row.path, row.line))}"]
      end
    end
  end
end
