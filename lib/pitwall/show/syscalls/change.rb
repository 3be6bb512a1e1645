# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/syscalls/words"

module Pitwall
  module Show
    # The change of system calls between two logs, as text.
    class SyscallsChange
      TOP = 10 # rows of a table, by default
      private_constant :TOP

      # A number with its sign: "+12", "−3", "0".
      #: (Integer) -> String
      def self.signed(number) = number.zero? ? "0" : "#{number.positive? ? "+" : "−"}#{Units.count(number.abs)}"

      # A row's change in percent: "−27.3%"; "" when there were no calls before.
      #: (Analyse::SyscallChange::Row) -> String
      def self.percent(row)
        return "" if row.before.zero?

        share = row.change.fdiv(row.before) * 100
        return "0%" if share.zero?

        "#{share.positive? ? "+" : "−"}#{format(share.abs < 0.05 ? "<0.1%%" : "%.1f%%", share.abs)}"
      end

      # The headline: "fewer file-system calls: 443,267 → 25,485 (−94.3%)".
      # @param calls [Analyse::SyscallChange::Row] the row of all calls
      #: (Analyse::SyscallChange::Row) -> String
      def self.claim(calls)
        both = "#{Units.count(calls.before)} → #{Units.count(calls.after)}"
        return "as many file-system calls as before: #{both}" if calls.change.zero?

        "#{calls.change.negative? ? "fewer" : "more"} file-system calls: #{both} (#{percent(calls)})"
      end

      # A warning when the logs were read with different patterns, so that patterns can't be compared; else none.
      # @param sides [Array<Hash>] before and after, as in {initialize}
      #: (Array[Hash[Symbol, untyped]]) -> Array[String]
      def self.other_patterns(sides)
        before, after = sides.map { |side| side[:report].patterns.names }
        before == after ? [] : ["the logs are of different kinds and were read with different patterns: " \
                                "compare calls, not patterns"]
      end

      # @param before [Hash] the first log: report, name, format, warnings (see SyscallsView)
      # @param after [Hash] the second log
      # @param limit [Integer, nil] rows of a table
      # @param base [String, nil] folder; paths below it are shown relative to it
      #: (Hash[Symbol, untyped], Hash[Symbol, untyped], ?limit: Integer?, ?width: Integer, ?palette: untyped,
      #:  ?base: String?) -> void
      def initialize(before, after, limit: nil, width: 100, palette: Plain, base: nil)
        @sides = [before, after]
        @change = Analyse::SyscallChange.new(before[:report], after[:report])
        @limit = limit || TOP
        @width = [width, TextReport::NARROWEST].max
        @palette = palette
        @location = Location.new(base)
      end

      # The report's text, without a newline at its end.
      #: () -> String
      def to_s
        parts = [header, table("total", @change.totals), passes, table("call", @change.by_call),
                 table("gem", @change.by_gem), lines]
        parts.reject(&:empty?).map { |part| part.join("\n") }.join("\n\n")
      end

      private

      def header
        titles = @sides.zip(%w[before after]).map do |side, name|
          "#{name}: #{SyscallsWords.title(side[:report], side[:name], side[:format]).join(" · ")}"
        end
        warnings = @sides.flat_map { |side| side[:warnings] }.map { |warning| SyscallsWords.path(warning.message) }
        warnings += SyscallsChange.other_patterns(@sides)
        wrap(SyscallsChange.claim(@change.totals.first)).map { |line| @palette.bold(line) } +
          titles.flat_map { |text| wrap(text) } +
          warnings.flat_map { |text| wrap("! #{text}").map { |line| @palette.yellow(line) } }
      end

      def passes
        rows = @change.passes
        cells = rows.map do |row|
          [row.name, Units.count(row.markers_before.to_i), Units.count(row.markers_after.to_i), *figures(row)]
        end
        rows.empty? ? [] : columns(["pattern", "markers", "after", "calls", "after", "change", ""], cells, rows)
      end

      def table(head, rows)
        shown = rows.first(@limit)
        return [] if shown.empty?

        cells = shown.map { |row| [SyscallsWords.path(row.name), *figures(row)] }
        columns([head, "before", "after", "change", ""], cells, shown)
      end

      def lines
        rows = @change.lines.reject { |row| row.change.zero? }.first(@limit)
        return [] if rows.empty?

        cells = rows.map { |row| [SyscallsWords.path(@location.text(*row.name)), *figures(row)] }
        columns(["line of Ruby", "before", "after", "change", ""], cells, rows)
      end

      def figures(row)
        [Units.count(row.before), Units.count(row.after), SyscallsChange.signed(row.change),
         SyscallsChange.percent(row)]
      end

      def columns(heads, cells, rows)
        at = heads.size - 2
        styles = rows.map { |row| row.change.zero? ? {} : { at => row.change.negative? ? :green : :red } }
        Columns.new(heads: heads, width: @width, palette: @palette).lines(cells, styles: styles)
      end

      def wrap(text) = Text.wrap(text, @width)
    end
  end
end
