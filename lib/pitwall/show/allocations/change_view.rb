# frozen_string_literal: true

require "pitwall/show/terminal/location"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The difference of two recordings of allocations: a sentence, and the sites that changed.
    # The difference is shown as text, Markdown, JSON and parts of a page.
    class AllocationChangeView
      SITES = 20 # rows of a table, by default
      NAME = 12 # columns of a side's name in a table
      # Columns left out on a narrow terminal, in this order: the interval, objects of both sides, bytes.
      GIVING_WAY = [1, 4, 5, 2].freeze
      WORDS = { objects: "Objects", bytes: "bytes", retained: "retained", retained_bytes: "bytes retained" }.freeze
      private_constant :SITES, :NAME, :GIVING_WAY, :WORDS

      # @param base [String] name of A
      # @param side [String] name of B
      # @param hints [Views::Hints] options that notes suggest
      # @param warnings [Array<String>] warnings shown first
      # @param limit [Integer] rows of a table
      # @param growth [Array<Array<Analyse::ObjectGrowth>>, nil] for each side, the growth in each of its recordings;
      #   nil unless all recordings have data about growth
      #: (Analyse::AllocationChange, base: String, side: String, hints: untyped, ?warnings: Array[String],
      #:  ?location: Location, ?limit: Integer, ?growth: Array[Array[Analyse::ObjectGrowth]]?) -> void
      def initialize(change, base:, side:, hints:, warnings: [], location: Location.new, limit: SITES, growth: nil)
        @hints = hints
        @growth = growth
        @change = change
        @base = base
        @side = side
        @warnings = warnings
        @location = location
        @limit = limit
      end

      # Lines of text.
      #: (width: Integer, palette: untyped) -> Array[String]
      def lines(width:, palette:)
        wrap = ->(text, style) { Text.wrap(text, width).map { |line| palette.public_send(style, line) } }
        lines = @warnings.flat_map { |text| wrap.call("! #{text}", :yellow) } + wrap.call(headline, :bold) +
                growing.flat_map { |text| wrap.call(text, :bold) }
        lines += ["", *table(width, palette)] if shown.any?
        lines + [""] + notes.flat_map { |text| wrap.call(text, :dim) }
      end

      # The report as Markdown.
      #: () -> String
      def markdown
        rows = shown.map do |row|
          texts = cells(row)
          texts.delete_at(3) unless retained?
          [*texts.map { |text| Markdown.text(text) }, Markdown.code(row.class_name), Markdown.code(where(row))]
        end
        heads = ["objects", "interval", "bytes", *("retained" if retained?), @base, @side, "class", "where"]
        heads = heads.map { |head| Markdown.text(head) }
        table = rows.empty? ? [] : ["", *Markdown.table(heads, rows, left: [heads.size - 2, heads.size - 1])]
        warned = @warnings.flat_map { |text| ["> #{Markdown.text(text)}", ""] }
        noted = notes.flat_map { |text| ["", Markdown.text(text)] }
        growth = growing.flat_map { |text| ["", "**#{Markdown.text(text)}**"] }
        [*warned, "**#{Markdown.text(headline)}**", *growth, *table, *noted].join("\n")
      end

      # Parts of a MeasuredPage: sentences above and below a table.
      #: () -> Hash[String, untyped]
      def parts
        rows = shown.map do |row|
          objects, interval, bytes, retained, a, b = cells(row)
          [row.class_name, coloured(objects, row.objects), *(interval unless exact?), a, b, coloured(bytes, row.bytes),
           *[row.bytes.a, row.bytes.b].map { |size| Units.bytes(size.round) },
           *(retained_cells(row, retained) if retained?), word(where(row)), word(row.method)]
        end
        heads = ["class", "objects", *("interval" unless exact?), @base, @side, "bytes", @base, @side,
                 *(["retained", @base, @side] if retained?), word("where"), word("method")]
        heads = heads.map { |head| head.is_a?(String) ? Text.shorten_middle(head, 24) : head }
        tables = rows.empty? ? [] : [{ "title" => "Sites that changed", "heads" => heads, "rows" => rows }]
        { "above" => @warnings.map { |text| "! #{text}" } + [headline, *growing], "tables" => tables, "below" => notes }
      end

      # The `objects` object of the JSON report, with all sites, changed or not.
      #: () -> Hash[String, untyped]
      def json
        sites = @change.rows.map do |row|
          retained, bytes = %i[retained retained_bytes].map { |name| figures(row[name]) if @change.totals.key?(name) }
          { "path" => row.path, "lines" => row.lines, "method" => row.method, "class" => row.class_name,
            "changed" => row.changed?, "objects" => figures(row.objects), "bytes" => figures(row.bytes),
            "retained" => retained, "retained_bytes" => bytes }
        end
        growth = @growth&.map do |runs|
          runs.map { |run| { "judged" => run.judged?, "sites" => ObjectGrowthJson.sites(run) } }
        end
        { "base" => @base, "side" => @side, "runs" => @change.counts, "exact" => @change.exact?,
          "totals" => @change.totals.to_h { |name, delta| [name.to_s, figures(delta)] }, "sites" => sites,
          "growth" => growth }
      end

      private

      def shown = @shown ||= @change.changed.first(@limit)

      # Whether a shown site's number of retained objects changed.
      def retained? = @change.totals.key?(:retained) && shown.any?(&:retained?)

      # Change of retained objects, and the retained objects of both sides.
      def retained_cells(row, text)
        [row.retained? ? coloured(text, row.retained) : text,
         *[row.retained.a, row.retained.b].map { |count| Units.count(count.round) }]
      end

      # The line about growth: "Growing: a.pit 2 places, 3,520,000 objects a minute; b.pit none"
      def growing
        return [] if @growth.nil?

        words = [@base, @side].zip(@growth).map do |name, runs|
          rows = runs.flat_map(&:rows)
          next "#{name} not known" if rows.empty? && runs.none?(&:judged?)
          next "#{name} none" if rows.empty?

          rate = rows.sum { |row| row.per_minute.point } / runs.size
          places = rows.map { |row| [row.path, row.line, row.class_name] }.uniq
          "#{name} #{Units.things(places.size, "place")}, " \
            "#{Units.count(ObjectGrowthWords.rounded(rate))} objects a minute"
        end
        ["Growing: #{words.join("; ")}"]
      end

      # Whether no shown site has an interval.
      def exact? = shown.all? { |row| row.objects.exact? }

      # The headline: "Objects: a.pit 2,547, b.pit 3,100 (+553, +21.7%) · bytes: …"
      def headline
        WORDS.slice(*@change.totals.keys).map do |name, word|
          delta = @change.totals.fetch(name)
          ends = [delta.a, delta.b].map { |value| value(name, value) }
          both = name == :objects ? "#{@base} #{ends[0]}, #{@side} #{ends[1]}" : ends.join(" → ")
          "#{word}: #{both}#{changed(name, delta)}"
        end.join(" · ")
      end

      def changed(name, delta)
        return " (the same)" if delta.change.zero?

        part = delta.a.zero? ? "" : format(", %+.1f%%", delta.change.fdiv(delta.a) * 100).tr("-", "−")
        " (#{signed(name, delta.change)}#{part})"
      end

      def value(name, value) = name.to_s.include?("bytes") ? Units.bytes(value.round) : Units.count(value.round)

      def signed(name, value) = "#{value.negative? ? "−" : "+"}#{value(name, value.abs)}"

      # Cells of a row: change of objects, its interval, change of bytes, change of retained objects, objects of both.
      def cells(row)
        [row.objects.change.zero? ? "same" : signed(:objects, row.objects.change),
         row.objects.exact? ? "" : "#{signed(:objects, row.objects.low)} … #{signed(:objects, row.objects.high)}",
         row.bytes.change.zero? ? "same" : signed(:bytes, row.bytes.change),
         row.retained? ? signed(:retained, row.retained.change) : "same",
         *[row.objects.a, row.objects.b].map { |count| count.zero? ? "–" : Units.count(count.round) }]
      end

      def table(width, palette)
        names = [@base, @side].map { |name| Text.shorten_middle(name, NAME) }
        heads = ["objects", exact? ? "" : "interval", "bytes", retained? ? "retained" : "", *names, "class"]
        table = Table.new(heads: heads, width: width, palette: palette, location: @location, giving_way: GIVING_WAY)
        rows = shown.map do |row|
          changed = row.retained? ? row.retained : row.objects.changed? ? row.objects : row.bytes
          numbers = cells(row)
          numbers[3] = "" unless retained?
          Table::Row.new(numbers: numbers, name: row.class_name, place: [row.path, line(row)], style: style(changed))
        end
        table.lines(rows)
      end

      # The site's line in B; in A where B doesn't have the site.
      def line(row) = row.lines.compact.last.to_i

      def where(row) = @location.text(row.path, line(row))

      def style(delta)
        return unless delta.changed?

        delta.change.positive? ? :red : :green
      end

      def coloured(text, delta) = { "text" => text, "style" => style(delta)&.to_s }

      def word(text) = { "text" => text, "style" => "words" }

      def notes
        rest = @change.changed.size - shown.size
        same = @change.rows.size - @change.changed.size
        hidden = ", #{Units.count(rest)} of them not shown (#{@hints.json})" if rest.positive?
        ["#{Units.things(@change.changed.size, "site")} changed#{hidden}; #{Units.count(same)} did not", doubt]
      end

      def doubt
        if @change.counts == [1, 1]
          runs = "what differs from run to run is not in them: " \
                 "#{@hints.sides} name further runs of a side"
        end
        if @change.exact?
          return "all objects were counted; #{runs || "a change counts beyond the range of each side's runs"}"
        end

        sampled = "objects were sampled: intervals are those of the sample, " \
                  "corrected for the number of sites (Bonferroni, 95%)"
        [sampled, runs].compact.join("; ")
      end

      def figures(delta)
        { **delta.to_h.transform_keys(&:to_s), "change" => delta.change, "changed" => delta.changed? }
      end
    end
  end
end
