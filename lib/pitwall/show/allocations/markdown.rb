# frozen_string_literal: true

require "pitwall/show/allocations/objects_markdown"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Allocations as Markdown, for pull requests and issues.
    class AllocationsMarkdown < ObjectsMarkdown
      # @param options [Hash] of ObjectsMarkdown
      #: (Analyse::Allocations, Analyse::Summary, by: Array[Symbol], sort: Symbol, ?retained: bool, **untyped) -> void
      def initialize(allocations, summary, by:, sort:, retained: false, **options)
        super(summary, **options)
        @allocations = allocations
        @by = by - [:stack]
        @sort = sort
        @retained = retained
      end

      # The report as Markdown.
      #: () -> String
      def to_s
        rows = @allocations.rows(by: @by, sort: @sort, retained: @retained)
        heads = ["objects", "old", "retained", *("retained bytes" if @allocations.retained_bytes?),
                 "mean age", "bytes", "GC charged (model)"]
        lines = [headline(*totals), ""] + Markdown.findings(@findings) + notes +
                ["| #{heads.join(" | ")} | what |", "|#{"---:|" * heads.size}---|"]
        lines.concat(rows.first(@limit).map { |row| line(row) })
        [*lines, *more(rows)].join("\n")
      end

      private

      def totals
        ["#{objects(@allocations.objects)} object#{"s" unless @allocations.objects == 1}",
         "#{"~" unless @allocations.ends?}#{Units.bytes(@allocations.total(:bytes))}", retained]
      end

      def retained
        return "retained: not known" unless @allocations.retained?

        ["#{Units.count(@allocations.total(:retained))} retained",
         *(Units.bytes(@allocations.total(:retained_bytes)) if @allocations.retained_bytes?)].join(", ")
      end

      # A number of objects. When objects were followed in bursts, the number of followed objects limits the figures.
      def objects(number, of: @allocations.looked_at)
        @allocations.ends? ? Units.count(number) : Units.about(number, of: of)
      end

      def notes
        notes = @warnings + @allocations.losses
        if @allocations.one_in > 1
          notes << format("one object in %.1f was followed: figures are estimates", @allocations.one_in)
        end

        notes.empty? ? [] : notes.map { |note| "> #{Markdown.text(note)}" } + [""]
      end

      def line(row)
        age = row.mean_age ? format("%.1f", row.mean_age) : ""
        old = @allocations.ends? ? Units.count(row.old) : "not known"
        age = "not known" unless @allocations.ends?
        retained = @allocations.retained? ? Units.count(row.retained) : "not known"
        exact = row.special && row.count == row.followed
        cells = [exact ? Units.count(row.count) : objects(row.count, of: row.followed), old, retained,
                 *(Units.bytes(row.retained_bytes) if @allocations.retained_bytes?),
                 age, Units.bytes(row.bytes), Units.duration(row.gc_ns)]
        "| #{cells.join(" | ")} | #{what(row)} |"
      end

      def what(row)
        place = row.path ? @location.text(row.path, row.line.to_i) : nil
        words = [*(@by & %i[class type method]).map { |key| row[key] }, place].compact.reject(&:empty?)
        words.map { |text| Markdown.code(text) }.join(" ")
      end
    end
  end
end
