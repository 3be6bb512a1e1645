# frozen_string_literal: true

require "pitwall/show/allocations/objects_text"
require "pitwall/show/caches/definition_rows"
require "pitwall/show/caches/words"
require "pitwall/show/profile/header_view"
require "pitwall/show/profile/text_report"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Lines that empty caches, as text.
    class CachesText < ObjectsText
      # @param proofs [Hash{Symbol => Array<String>}] commands by group of CachesWords
      # @param samples [String] the command that takes samples as well
      # @param options [Hash] of ObjectsText
      #: (Analyse::Caches, Analyse::Summary, ?proofs: Hash[Symbol, Array[String]], ?samples: String?, **untyped) -> void
      def initialize(caches, summary, proofs: {}, samples: nil, **options)
        super(summary, **options)
        @caches = caches
        @proofs = proofs
        @samples = samples
      end

      private

      def header
        after = CachesWords.after(@caches.after)
        [*counters, *losses(CachesWords.losses(@caches)),
         *[after, *CachesWords.notes(@caches)].compact.flat_map { |text| note("i", text, :dim) }]
      end

      def counters
        @caches.counters.filter_map do |name, count|
          next if count.zero?

          source = CachesWords.own?(name) ? "counted by Pitwall" : "counted by Ruby: #{name}"
          "#{Units.count(count).rjust(9)}  #{CachesWords.counter(name)} #{@palette.dim("(#{source})")}"
        end
      end

      def body
        changes = @caches.changes
        return [CachesWords.nothing(@caches), *definitions, *next_steps] if changes.empty?

        shown = changes.first(@limit)
        names = shown.flat_map { |_row, counts| counts.keys }.uniq.reject { |name| CachesWords.own?(name) }
        heads = ["changes", *cost_heads, *names, "what"]
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location,
                          giving_way: (1..heads.size - 2).to_a.reverse)
        lines = table.lines(shown.map { |row, counts| table_row(row, counts, names) })
        if changes.size > shown.size
          lines << @palette.dim("#{Units.things(changes.size - shown.size, "more row")} (#{@hints.rows(changes.size)})")
        end
        lines + order + [""] + advice(shown) + definitions + next_steps
      end

      def cost_heads = [*("time" if @caches.cost.sampled?), *("misses" if @caches.cost.misses?)]

      def costs(row, counts)
        figures = @caches.figures(row, counts)
        [*(CachesWords.time(figures) if @caches.cost.sampled?), *(CachesWords.misses(figures) if @caches.cost.misses?)]
      end

      def order
        lines = wrap(CachesWords.order(@caches))
        lines += [*wrap("#{CachesWords::NO_TIME}:"), "  #{@samples}"] if @samples && !@caches.cost.sampled?
        lines.map { |line| @palette.dim(line) }
      end

      # Commands are to be copied, and stay on one line.
      def advice(shown)
        CachesWords.advice(shown.map { |row, _| row.kind }).flat_map do |group, text|
          [*wrap(text), *@proofs.fetch(group, []).map { |command| "  #{command}" }]
        end
      end

      def definitions
        return [] unless @caches.definitions.any?

        rows = DefinitionRows.new(@caches.definitions, limit: @limit)
        modules = rows.rows.map { |row| Table::Row.new(numbers: rows.figures(row), name: rows.name(row)) }
        lines = rows.lines.map do |line|
          Table::Row.new(numbers: rows.line_figures(line), name: rows.line_name(line), place: [line.path, line.line])
        end
        ["", @palette.bold(rows.title), *rows.notes.flat_map { |text| wrap(text) },
         *definition_table([*DefinitionRows::HEADS, "module or class"], modules), "",
         *definition_table([*DefinitionRows::LINE_HEADS, "lines that define"], lines)]
      end

      def definition_table(heads, rows)
        Table.new(heads: heads, width: @width, palette: @palette, location: @location, giving_way: [7, 6])
             .lines(rows)
      end

      def table_row(row, counts, names)
        own = CachesWords.own?(row.counter) ? Units.count(row.count) : ""
        increases = names.map { |name| counts[name] ? Units.count(counts[name]) : "" }
        Table::Row.new(numbers: [own, *costs(row, counts), *increases],
                       name: "#{CachesWords.kind(row.kind)}: #{row.subject}", place: [row.path, row.line])
      end
    end
  end
end
