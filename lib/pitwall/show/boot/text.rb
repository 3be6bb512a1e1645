# frozen_string_literal: true

require "pitwall/show/allocations/objects_text"
require "pitwall/show/boot/tree_rows"
require "pitwall/show/boot/uses_view"
require "pitwall/show/boot/words"
require "pitwall/show/profile/header_view"
require "pitwall/show/profile/text_report"
require "pitwall/show/terminal/table"

module Pitwall
  module Show
    # A boot as text: figures, whose code took the time, what to do, the tree of loads.
    class BootText < ObjectsText
      ROWS = 40 # of the tree, where no limit is asked for
      GEMS = 8
      NAME = 40 # columns of the tree with the line that asked; numbers give way
      private_constant :ROWS, :GEMS, :NAME

      # @param weight [Symbol] that orders the tree
      # @param options [Hash] of ObjectsText
      #: (Analyse::Boot, Analyse::Summary, ?weight: Symbol, **untyped) -> void
      def initialize(boot, summary, weight: :wall, limit: nil, **options)
        super(summary, limit: limit || ROWS, **options)
        @boot = boot
        @weight = weight
      end

      private

      def title
        words = [@summary.programs.join(", "), @summary.rubies.join(", ")].reject(&:empty?).join(" · ")
        wrap(words).map { |line| @palette.bold(line) }
      end

      def header
        [*BootWords.summary(@boot).flat_map { |text| wrap(text) }, *losses(BootWords.losses(@boot)),
         *BootWords.notes(@boot).flat_map { |text| note("i", text, :dim) }]
      end

      def body
        return [BootWords::NOTHING, *next_steps] if @boot.nodes.empty?

        uses = BootUsesView.new(@boot, location: @location)
        [*parts, "", *gems, *advice, *uses.lines(width: @width, palette: @palette, hint: @hints.json), *tree,
         *next_steps]
      end

      def parts
        whole = @boot.wall_ns
        rows = @boot.parts.select { |row| row.own_ns.positive? || row.files.positive? }.map do |row|
          Table::Row.new(numbers: [Units.percent(row.own_ns, whole), Units.duration(row.own_ns),
                                   row.compile_ns.zero? ? "" : Units.duration(row.compile_ns), Units.count(row.files)],
                         name: row.name, place: nil)
        end
        table(["share", "self", "compile", "files", "whose code"], rows)
      end

      def gems
        rows = @boot.gems.first(GEMS).map do |row|
          Table::Row.new(numbers: [Units.duration(row.total_ns), Units.duration(row.own_ns), Units.count(row.files)],
                         name: row.name, place: nil)
        end
        rows.empty? ? [] : [*table(%w[total self files gem], rows), ""]
      end

      def advice
        found = @boot.advice
        return [] if found.empty?

        ruby = @summary.headers.first&.ruby&.fetch("version", nil)
        lines = found.each_with_index.flat_map do |one, at|
          proof = @hints.boot_proof(BootWords.setting(one, ruby))
          [*wrap("#{at + 1}. #{BootWords.advice(one, @location)}"), @palette.dim("   #{proof}")]
        end
        [@palette.bold("What to do"), *lines, ""]
      end

      def tree
        found = BootTreeRows.new(@boot, weight: @weight, limit: @limit).rows
        rows = found.map { |row| tree_row(row) }
        left = @boot.nodes.size - rows.size
        more = left.positive? ? [@palette.dim("#{Units.things(left, "lighter load")} not shown (#{@hints.json})")] : []
        beside = @weight == :wall ? "objects" : "wall"
        table(["total", "self", beside, "rss", "what was loaded"], rows, giving_way: [3, 2], name: NAME) + more
      end

      def tree_row(row)
        node = row.node
        beside = @weight == :wall ? :objects : :wall
        kind, path = BootWords.kind(node, @boot), @location.text(node.path, 0)
        numbers = [figure(node.total, @weight), figure(node.own, @weight), figure(node.total, beside),
                   figure(node.total, :rss)]
        # A narrow column cuts the path, not the kind. Bundler.require has no path: there the kind is the name.
        indent, name = "  " * row.depth, path.empty? ? kind : path
        lead = kind.empty? || path.empty? ? indent : "#{indent}#{kind}: "
        Table::Row.new(numbers: numbers, name: name, lead: lead, place: [node.row.from, node.row.line])
      end

      def figure(figures, name) = BootWords.figure(figures[name], name)

      def table(heads, rows, **options)
        Table.new(heads: heads, width: @width, palette: @palette, location: @location, cut: :shorten_left, **options)
             .lines(rows)
      end
    end
  end
end
