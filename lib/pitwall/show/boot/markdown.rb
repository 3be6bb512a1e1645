# frozen_string_literal: true

require "pitwall/show/allocations/objects_markdown"
require "pitwall/show/boot/tree_rows"
require "pitwall/show/boot/uses_view"
require "pitwall/show/boot/words"
require "pitwall/show/terminal/markdown"

module Pitwall
  module Show
    # A boot as Markdown, for pull requests.
    class BootMarkdown < ObjectsMarkdown
      # @param hints [Views::Hints] commands
      # @param options [Hash] of ObjectsMarkdown
      #: (Analyse::Boot, Analyse::Summary, hints: untyped, ?weight: Symbol, **untyped) -> void
      def initialize(boot, summary, hints:, weight: :wall, **options)
        super(summary, **options)
        @boot = boot
        @hints = hints
        @weight = weight
      end

      #: () -> String
      def to_s
        notes = [*@warnings, *BootWords.losses(@boot), *BootWords.notes(@boot)]
        [headline, "", *BootWords.summary(@boot).map { |text| "- #{Markdown.text(text)}" }, "",
         *notes.flat_map { |text| ["> #{Markdown.text(text)}", ""] }, *body].join("\n")
      end

      private

      def body
        return [BootWords::NOTHING] if @boot.nodes.empty?

        [*parts, "", *advice, *BootUsesView.new(@boot, location: @location).markdown, *tree]
      end

      def parts
        rows = @boot.parts.select { |row| row.own_ns.positive? || row.files.positive? }.map do |row|
          [Units.percent(row.own_ns, @boot.wall_ns), Units.duration(row.own_ns), Units.count(row.files), row.name]
        end
        Markdown.table(["share", "self", "files", "whose code"], rows, left: [3])
      end

      def advice
        ruby = @summary.headers.first&.ruby&.fetch("version", nil)
        lines = @boot.advice.each_with_index.map do |one, at|
          "#{at + 1}. #{Markdown.text(BootWords.advice(one, @location))} — " \
            "#{Markdown.code(@hints.boot_proof(BootWords.setting(one, ruby)))}"
        end
        lines.empty? ? [] : [*lines, ""]
      end

      def tree
        rows = BootTreeRows.new(@boot, weight: @weight, limit: @limit).rows.map do |row|
          node = row.node
          [figure(node.total), figure(node.own), "#{"&nbsp;&nbsp;" * row.depth}#{BootWords.kind(node, @boot)}",
           Markdown.code(@location.text(node.path, 0)), Markdown.code(@location.text(node.row.from, node.row.line))]
        end
        Markdown.table(["total", "self", "kind", "what was loaded", "asked for by"], rows, left: [2, 3, 4])
      end

      def figure(figures) = BootWords.figure(figures[@weight], @weight)
    end
  end
end
