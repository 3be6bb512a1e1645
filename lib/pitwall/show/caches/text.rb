# frozen_string_literal: true

require "pitwall/show/allocations/objects_text"
require "pitwall/show/caches/words"
require "pitwall/show/profile/header_view"
require "pitwall/show/profile/text_report"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Lines that empty caches, as text.
    class CachesText < ObjectsText
      # @param options [Hash] of ObjectsText
      #: (Analyse::Caches, Analyse::Summary, **untyped) -> void
      def initialize(caches, summary, **options)
        super(summary, **options)
        @caches = caches
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
        return [CachesWords::NOTHING, *next_steps] if changes.empty?

        shown = changes.first(@limit)
        names = shown.flat_map { |_row, counts| counts.keys }.uniq.reject { |name| CachesWords.own?(name) }
        table = Table.new(heads: ["changes", *names, "what"], width: @width, palette: @palette, location: @location,
                          giving_way: (1..names.size).to_a.reverse)
        lines = table.lines(shown.map { |row, counts| table_row(row, counts, names) })
        if changes.size > shown.size
          lines << @palette.dim("#{Units.things(changes.size - shown.size, "more row")} (#{@hints.rows(changes.size)})")
        end
        advice = CachesWords.advice(shown.map { |row, _| row.kind })
        lines + [""] + advice.flat_map { |text| wrap(text) } + next_steps
      end

      def table_row(row, counts, names)
        own = CachesWords.own?(row.counter) ? Units.count(row.count) : ""
        Table::Row.new(numbers: [own, *names.map { |name| counts[name] ? Units.count(counts[name]) : "" }],
                       name: "#{CachesWords.kind(row.kind)}: #{row.subject}", place: [row.path, row.line])
      end
    end
  end
end
