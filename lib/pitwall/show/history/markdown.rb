# frozen_string_literal: true

require "pitwall/show/history/words"
require "pitwall/show/terminal/markdown"

module Pitwall
  module Show
    # A project's series, or its change points, as a Markdown table.
    class HistoryMarkdown
      #: (Array[Analyse::ResultSeries]) -> void
      def initialize(found)
        @found = found
      end

      #: () -> String
      def table
        rows = @found.map do |one|
          change = one.last_change
          [Markdown.text(HistoryWords.name(one)), HistoryWords.host(one.series[:host_id]), one.series[:count].to_s,
           value(one, one.newest[:value]), change ? HistoryWords.change(change[:ratio]) : "",
           change ? HistoryWords.doubt(change[:p_value]) : "", change ? HistoryWords.time(change[:measured_at]) : ""]
        end
        grid(["case and metric", "host", "results", "newest", "last change", "p", "since"], rows)
      end

      #: () -> String
      def changes
        pairs = @found.flat_map { |one| one.changes.map { |change| [one, change] } }
        rows = pairs.sort_by { |_, change| change[:measured_at] }.reverse.map do |one, change|
          [HistoryWords.time(change[:measured_at]), Markdown.text(HistoryWords.name(one)),
           value(one, change[:before]), value(one, change[:after]), HistoryWords.change(change[:ratio]),
           HistoryWords.doubt(change[:p_value]), Markdown.text(HistoryWords.cause(one, change))]
        end
        grid(["since", "case and metric", "before", "after", "change", "p", "with"], rows)
      end

      private

      def value(one, number) = HistoryWords.value(number, one.series[:unit])

      def grid(heads, rows) = Markdown.table(heads, rows, left: [0, 1]).join("\n")
    end
  end
end
