# frozen_string_literal: true

require "pitwall/show/bench/words"
require "pitwall/show/measured/growth_view"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/plain"

module Pitwall
  module Show
    # The report of `pitwall bench` as Markdown, for a pull request or an issue.
    class BenchMarkdown
      # Columns of plots. A pull request scrolls wider blocks of code.
      DRAWN = 90
      private_constant :DRAWN

      #: (Analyse::BenchReport) -> void
      def initialize(report)
        @report = report
        @words = BenchWords.new(report)
      end

      # The report, without a newline at its end.
      #: () -> String
      def to_s
        tables = [@words.speed, @words.memory, @words.caches].map { |heads, rows| table(heads, rows) }
        parts = [title, *tables, *commands, *rankings, undecided, *growths, Provenance.quoted(@report),
                 Markdown.details("How it was made", made), Provenance.block(@report.command)]
        parts.reject(&:empty?).map { |lines| lines.join("\n") }.join("\n\n")
      end

      private

      def title
        return ["**Nothing was measured**"] if @report.summaries.empty?

        [Markdown.text(@words.title).sub(/\A.+?(?= · |\z)/) { |first| "**#{first}**" }]
      end

      # A table. The name is code; the other cells are numbers, or words in columns of `left`.
      def table(heads, rows, left: [])
        return [] if rows.empty?

        cells = rows.map { |name, *numbers| [Markdown.code(name), *numbers.map { |cell| Markdown.text(cell) }] }
        Markdown.table(heads.map { |head| Markdown.text(head) }, cells, left: [0, *left])
      end

      def commands
        @words.commands.map do |one|
          heads, rows = @words.command(one)
          cells = rows.map { |row| row.map { |cell| Markdown.text(cell) } }
          ["#{Markdown.code(one.name)} (#{Units.things(one.processes, "run")})", "", *Markdown.table(heads, cells)]
        end
      end

      def rankings
        @report.rankings.map do |title, ranked|
          heads, rows, = @words.ranking(title, ranked)
          table(heads, rows, left: [4])
        end
      end

      def undecided = @words.undecided.map { |text| Markdown.text(text) }.flat_map { |line| [line, ""] }[0..-2].to_a

      def growths
        @report.growths.to_a.map do |sweep|
          heads, rows = GrowthView.cells(sweep)
          drawn = GrowthView.new(width: DRAWN, palette: Plain).plot(sweep)
          cells = rows.map { |row| row.map { |cell| Markdown.text(cell) } }
          table = Markdown.table(heads.map { |head| Markdown.text(head) }, cells, left: [])
          [*GrowthView.sentences(sweep).flat_map { |text| [Markdown.text(text), ""] }, *table, *plot(drawn)]
        end
      end

      def plot(lines) = lines.empty? ? [] : ["", *Markdown.details("Plot", Markdown.block(lines))]

      def made
        facts = { "made of" => @words.made, **@words.facts, "host" => Provenance.host(@report.host) }
        facts.reject { |_, text| text.empty? }.map { |name, text| "- #{name}: #{Markdown.text(text)}" }
      end
    end
  end
end
