# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/show/terminal/columns"
require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/plain"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Which commit of a range changed a benchmark, as text and Markdown. {Analyse::CommitSearch} has the facts.
    class SearchView
      HEADS = %w[compared change interval pairs answer].freeze
      # What a test's answer means for the search.
      ANSWERS = { "ends" => { "changed" => "changed", "same" => "the same" },
                  "half" => { "changed" => "it is this one or earlier", "unchanged" => "it comes later" },
                  "commit" => { "changed" => "changed" } }.freeze
      LISTED = 8
      private_constant :HEADS, :ANSWERS, :LISTED

      # @param hints [Views::Hints] options that notes suggest
      #: (Analyse::ComparisonReport, hints: untyped) -> void
      def initialize(report, hints:)
        @search = report.search
        @hints = hints
      end

      # The lines of the text.
      #: (width: Integer, ?palette: untyped) -> Array[String]
      def lines(width:, palette: Plain)
        text, style = answer
        table = Columns.new(heads: HEADS, width: width, palette: palette, left: [4]).lines(rows)
        [*Text.wrap(text, width).map { |line| palette.bold(palette.public_send(style, line)) },
         *candidates.flat_map { |line| Text.wrap(line, width) }, "", *table,
         *skipped.flat_map { |line| Text.wrap(line, width) }.map { |line| palette.yellow(line) }]
      end

      # The same as Markdown.
      #: () -> Array[String]
      def markdown
        cells = rows.map { |row| row.map { |cell| Markdown.text(cell) } }
        ["**#{Markdown.text(answer.first)}**", "", *candidates.map { |line| "- #{Markdown.text(line.strip)}" }, "",
         *Markdown.table(HEADS, cells, left: [0, 4]), "", *skipped.map { |line| "- #{Markdown.text(line)}" }]
      end

      private

      def answer
        case @search["verdict"]
        when "same" then ["Nothing to find in #{@search["range"]}: its ends are the same within the margin", :green]
        when "found" then [found, :red]
        else [undecided, :yellow]
        end
      end

      def found
        commits = @search["candidates"]
        ends = @search["tests"].first
        confidence = Figures.share(1 - @search["alpha"])
        change = "#{Figures.change(ratio(ends))} (#{Figures.range(ratio(ends))}) from end to end"
        return "#{name(commits.last)} changed it, with #{confidence} confidence: #{own || change}" if commits.one?

        "One of #{commits.size} commits changed it, with #{confidence} confidence: #{change}. " \
          "Those between can't be measured"
      end

      # The change of the commit itself.
      def own
        test = @search["tests"].find { |each| each["kind"] == "commit" } or return
        whole = ratio(@search["tests"].first)
        "#{Figures.change(ratio(test))} (#{Figures.range(ratio(test))}) of #{Figures.change(whole)} from end to end"
      end

      def undecided
        if @search["tests"].none? { |test| test["kind"] != "ends" }
          return "Undecided whether the ends of #{@search["range"]} differ by more than the margin: #{@hints.longer}"
        end

        "Undecided: one of #{Units.things(@search["candidates"].size, "commit")} changed it: #{@hints.longer}"
      end

      def candidates
        list = @search["candidates"].to_a
        halved = @search["tests"].any? { |each| each["kind"] == "half" }
        return [] if list.size < 2 || @search["verdict"] == "same" || !halved

        more = list.size > LISTED ? ["  and #{list.size - LISTED} more"] : []
        list.first(LISTED).map { |commit| "  #{name(commit)}" } + more
      end

      def rows
        @search["tests"].map do |test|
          ratio = ratio(test)
          known = Figures.sized?(ratio)
          ends = test.values_at("before", "after").map { |commit| commit["id"].to_s[0, 8] }.join(" → ")
          [ends, known ? Figures.change(ratio) : "", known ? Figures.range(ratio) : "none", test["pairs"].to_s,
           ANSWERS.dig(test["kind"], test["answer"]) || "undecided"]
        end
      end

      def skipped
        @search["skipped"].to_a.map do |commit|
          "not measured: #{name(commit)}: #{Text.line(commit["reason"].to_s)}"
        end
      end

      def name(commit) = Text.line("#{commit["id"].to_s[0, 8]} #{commit["title"]}".strip)

      def ratio(test) = Analyse::Estimate.new(*test["ratio"].to_h.values_at("point", "low", "high", "level", "n"))
    end
  end
end
