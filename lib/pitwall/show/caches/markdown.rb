# frozen_string_literal: true

require "pitwall/show/allocations/objects_markdown"
require "pitwall/show/caches/definition_rows"
require "pitwall/show/caches/words"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Lines that empty caches, as Markdown.
    class CachesMarkdown < ObjectsMarkdown
      # @param proofs [Hash{Symbol => Array<String>}] commands by group of CachesWords
      # @param options [Hash] of ObjectsMarkdown
      #: (Analyse::Caches, Analyse::Summary, ?proofs: Hash[Symbol, Array[String]], **untyped) -> void
      def initialize(caches, summary, proofs: {}, **options)
        super(summary, **options)
        @caches = caches
        @proofs = proofs
      end

      #: () -> String
      def to_s
        after = CachesWords.after(@caches.after)
        notes = (@warnings + CachesWords.losses(@caches)).flat_map { |text| ["> #{Markdown.text(text)}", ""] }
        [headline(*after), "", *counters, *notes, *body, *advice, *definitions].join("\n")
      end

      private

      def counters
        rows = @caches.counters.reject { |_, count| count.zero? }.map do |name, count|
          [Units.count(count), CachesWords.counter(name), CachesWords.own?(name) ? "Pitwall" : "Ruby: `#{name}`"]
        end
        rows.empty? ? [] : [*Markdown.table(["count", "counter", "counted by"], rows, left: [1, 2]), ""]
      end

      def body
        changes = @caches.changes
        return [CachesWords.nothing(@caches)] if changes.empty?

        rows = changes.first(@limit).map do |row, counts|
          vm = counts.reject { |name, _| CachesWords.own?(name) }.map { |name, count| "#{name} +#{Units.count(count)}" }
          figures = @caches.figures(row, counts)
          [Units.count(row.count), CachesWords.kind(row.kind), Markdown.code(row.subject),
           Markdown.code(@location.text(row.path, row.line)), vm.join(", "), CachesWords.misses(figures),
           CachesWords.time(figures)]
        end
        table = Markdown.table(%w[count change subject line counters misses time], rows, left: [1, 2, 3, 4])
        table + more(changes) + ["", Markdown.text(CachesWords.order(@caches))]
      end

      def definitions
        return [] unless @caches.definitions.any?

        rows = DefinitionRows.new(@caches.definitions, limit: @limit)
        modules = rows.rows.map { |row| [*rows.figures(row), Markdown.code(rows.name(row))] }
        lines = rows.lines.map do |line|
          [*rows.line_figures(line), Markdown.code(rows.line_name(line)),
           Markdown.code(@location.text(line.path, line.line))]
        end
        ["", "### #{rows.title}", "", *rows.notes.map { |text| Markdown.text(text) }, "",
         *Markdown.table([*DefinitionRows::HEADS, "module or class"], modules, left: [8]), "",
         *Markdown.table([*DefinitionRows::LINE_HEADS, "defines on", "line"], lines, left: [2, 3])]
      end

      def advice
        CachesWords.advice(@caches.changes.first(@limit).map { |row, _| row.kind })
                   .flat_map do |group, text|
          commands = @proofs.fetch(group, [])
          ["", Markdown.text(text), *(["", "```sh", *commands, "```"] if commands.any?)]
        end
      end
    end
  end
end
