# frozen_string_literal: true

require "pitwall/show/page/page"
require "pitwall/show/syscalls/change"

module Pitwall
  module Show
    # The page about the change of system calls between two logs.
    class SyscallsChangePage
      TOP = 100 # rows of a table
      private_constant :TOP

      # @param before [Hash{Symbol => Object}] the first log, see SyscallsChange
      # @param after [Hash{Symbol => Object}] the second log
      # @param base [String, nil] folder; paths below it are shown relative to it
      #: (Hash[Symbol, untyped], Hash[Symbol, untyped], ?base: String?) -> void
      def initialize(before, after, base: nil)
        @sides = [before, after]
        @change = Analyse::SyscallChange.new(before[:report], after[:report])
        @location = Location.new(base)
      end

      # The page's HTML.
      #: () -> String
      def to_s = Page.new(data).to_s

      # The page's data.
      # @api private
      #: () -> PageData
      def data
        title = @sides.map { |side| SyscallsWords.path(side[:name]) }.reverse.join(" against ")
        calls = @change.totals.first
        data = PageData.new(title: "#{title} · Pitwall")
        verdict = { "claim" => SyscallsChange.claim(calls), "figures" => FIGURES, "style" => style(calls) }
        data.object = { "schema" => "pitwall/page-1", "kind" => "measured", "title" => title, "facts" => [],
                        "undecided" => [], "headline" => [], "beside" => [], "samples" => [], "growth" => [],
                        "verdicts" => [verdict], "tables" => tables, "warnings" => warnings, "made" => made,
                        "version" => VERSION }
        data
      end

      FIGURES = "counted, so exact; whether the logs are of the same work is yours to know"
      private_constant :FIGURES

      private

      def tables
        tables = [table("In all", "", @change.totals), passes, table("By call", "call", @change.by_call),
                  table("By gem", "gem", @change.by_gem), lines]
        tables.reject { |table| table["rows"].empty? }
      end

      def table(title, head, rows)
        cells = rows.first(TOP).map { |row| [SyscallsWords.path(row.name), *figures(row)] }
        { "title" => title, "heads" => [head, *HEADS], "rows" => cells }
      end

      HEADS = %w[before after change] + [""]
      private_constant :HEADS

      def passes
        rows = @change.passes.first(TOP).map do |row|
          [row.name, Units.count(row.markers_before.to_i), Units.count(row.markers_after.to_i), *figures(row)]
        end
        heads = ["pattern", "found before", "after", "calls before", *HEADS.drop(1)]
        { "title" => "By pattern", "heads" => heads, "rows" => rows }
      end

      def lines
        rows = @change.lines.reject { |row| row.change.zero? }.first(TOP)
        cells = rows.map { |row| [SyscallsWords.path(@location.text(*row.name)), *figures(row)] }
        { "title" => "By line of Ruby", "heads" => ["line", *HEADS], "rows" => cells }
      end

      def figures(row)
        change = { "text" => SyscallsChange.signed(row.change), "style" => style(row) }
        [Units.count(row.before), Units.count(row.after), change, SyscallsChange.percent(row)]
      end

      def style(row) = row.change.zero? ? "dim" : (row.change.negative? ? "green" : "red")

      def warnings
        texts = @sides.flat_map { |side| side[:warnings] }.map { |warning| SyscallsWords.path(warning.message) }
        [*texts, *SyscallsChange.other_patterns(@sides)].map { |text| { "text" => text } }
      end

      def made
        @sides.zip(%w[before after]).map do |side, name|
          [name, SyscallsWords.title(side[:report], side[:name], side[:format]).join(" · ")]
        end
      end
    end
  end
end
