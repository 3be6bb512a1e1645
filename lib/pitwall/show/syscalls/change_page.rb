# frozen_string_literal: true

require "pitwall/show/page/page"
require "pitwall/show/syscalls/change"

module Pitwall
  module Show
    # The page of two logs of system calls: what changed from one to the other.
    class SyscallsChangePage
      # Rows of a table.
      TOP = 100
      private_constant :TOP

      # @param before [Hash{Symbol => Object}] as SyscallsChange takes it
      # @param base [String, nil] paths below it are shown relative to it
      #: (Hash[Symbol, untyped], Hash[Symbol, untyped], ?base: String?) -> void
      def initialize(before, after, base: nil)
        @sides = [before, after]
        @change = Analyse::SyscallChange.new(before[:report], after[:report])
        @location = Location.new(base)
      end

      #: () -> String
      def to_s = Page.new(data).to_s

      # @api private
      #: () -> PageData
      def data
        title = @sides.map { |side| SyscallsWords.path(side[:name]) }.reverse.join(" against ")
        calls = @change.totals.first
        data = PageData.new(title: "#{title} · Pitwall")
        data.object = { "schema" => "pitwall/page-1", "kind" => "measured", "title" => title, "facts" => [], "undecided" => [], "headline" => [], "beside" => [], "samples" => [], "growth" => [],
                        "verdicts" => [{ "claim" => SyscallsChange.claim(calls), "figures" => "counted, so exact; whether the logs are of the same work is yours to know", "style" => style(calls) }],
                        "tables" => tables, "warnings" => warnings, "made" => made, "version" => VERSION }
        data
      end

      private

      def tables
        [table("In all", "", @change.totals), passes, table("By call", "call", @change.by_call), table("By gem", "gem", @change.by_gem), lines].reject { |table| table["rows"].empty? }
      end

      def table(title, head, rows)
        { "title" => title, "heads" => [head, *HEADS], "rows" => rows.first(TOP).map { |row| [SyscallsWords.path(row.name), *figures(row)] } }
      end

      HEADS = %w[before after change] + [""]
      private_constant :HEADS

      def passes
        rows = @change.passes.first(TOP).map { |row| [row.name, Units.count(row.markers_before.to_i), Units.count(row.markers_after.to_i), *figures(row)] }
        { "title" => "By pattern", "heads" => ["pattern", "found before", "after", "calls before", *HEADS.drop(1)], "rows" => rows }
      end

      def lines
        rows = @change.lines.reject { |row| row.change.zero? }.first(TOP)
        { "title" => "By line of Ruby", "heads" => ["line", *HEADS], "rows" => rows.map { |row| [SyscallsWords.path(@location.text(*row.name)), *figures(row)] } }
      end

      def figures(row)
        [Units.count(row.before), Units.count(row.after), { "text" => SyscallsChange.signed(row.change), "style" => style(row) }, SyscallsChange.percent(row)]
      end

      def style(row) = row.change.zero? ? "dim" : (row.change.negative? ? "green" : "red")

      def warnings
        texts = @sides.flat_map { |side| side[:warnings] }.map { |warning| SyscallsWords.path(warning.message) }
        [*texts, *SyscallsChange.other_patterns(@sides)].map { |text| { "text" => text } }
      end

      def made = @sides.zip(%w[before after]).map { |side, name| [name, SyscallsWords.title(side[:report], side[:name], side[:format]).join(" · ")] }
    end
  end
end
