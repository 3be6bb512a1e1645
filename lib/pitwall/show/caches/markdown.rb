# frozen_string_literal: true

require "pitwall/show/allocations/objects_markdown"
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
        [headline(*after), "", *counters, *notes, *body, *advice].join("\n")
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
        return [CachesWords::NOTHING] if changes.empty?

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
