# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/syscalls/words"

module Pitwall
  module Show
    # From one log to another, for people.
    class SyscallsChange
      TOP = 10
      private_constant :TOP

      # "+12", "−3", "0"
      #: (Integer) -> String
      def self.signed(number) = number.zero? ? "0" : "#{number.positive? ? "+" : "−"}#{Units.count(number.abs)}"

      # "−27.3%" of a row; "" where there was nothing before.
      #: (Analyse::SyscallChange::Row) -> String
      def self.percent(row)
        return "" if row.before.zero?

        share = row.change.fdiv(row.before) * 100
        share.zero? ? "0%" : "#{share.positive? ? "+" : "−"}#{format(share.abs < 0.05 ? "<0.1%%" : "%.1f%%", share.abs)}"
      end

      # "fewer file-system calls: 443,267 → 25,485 (−94.3%)"
      # @param calls [Analyse::SyscallChange::Row] of all
      #: (Analyse::SyscallChange::Row) -> String
      def self.claim(calls)
        word = calls.change.zero? ? "as many file-system calls as before" : "#{calls.change.negative? ? "fewer" : "more"} file-system calls"
        "#{word}: #{Units.count(calls.before)} → #{Units.count(calls.after)}#{" (#{percent(calls)})" unless calls.change.zero?}"
      end

      # What is to be said where patterns can't be compared.
      # @param sides [Array<Hash>] before and after
      #: (Array[Hash[Symbol, untyped]]) -> Array[String]
      def self.other_patterns(sides)
        before, after = sides.map { |side| side[:report].patterns.names }
        before == after ? [] : ["the logs are of different kinds and were read with different patterns: compare calls, not patterns"]
      end

      #: (Hash[Symbol, untyped], Hash[Symbol, untyped], ?limit: Integer?, ?width: Integer, ?palette: untyped, ?base: String?) -> void
      def initialize(before, after, limit: nil, width: 100, palette: Plain, base: nil)
        @sides = [before, after]
        @change = Analyse::SyscallChange.new(before[:report], after[:report])
        @limit = limit || TOP
        @width = [width, TextReport::NARROWEST].max
        @palette = palette
        @location = Location.new(base)
      end

      #: () -> String
      def to_s
        parts = [header, table("total", @change.totals), passes, table("call", @change.by_call), table("gem", @change.by_gem), lines]
        parts.reject(&:empty?).map { |part| part.join("\n") }.join("\n\n")
      end

      private

      def header
        wrap(SyscallsChange.claim(@change.totals.first)).map { |line| @palette.bold(line) } +
          @sides.zip(%w[before after]).flat_map { |side, name| wrap("#{name}: #{SyscallsWords.title(side[:report], side[:name], side[:format]).join(" · ")}") } +
          @sides.flat_map { |side| side[:warnings] }.flat_map { |warning| wrap("! #{SyscallsWords.path(warning.message)}").map { |line| @palette.yellow(line) } } +
          SyscallsChange.other_patterns(@sides).flat_map { |text| wrap("! #{text}").map { |line| @palette.yellow(line) } }
      end

      def passes
        rows = @change.passes
        cells = rows.map { |row| [row.name, Units.count(row.markers_before.to_i), Units.count(row.markers_after.to_i), *figures(row)] }
        rows.empty? ? [] : columns(["pattern", "markers", "after", "calls", "after", "change", ""], cells, rows)
      end

      def table(head, rows)
        shown = rows.first(@limit)
        return [] if shown.empty?

        columns([head, "before", "after", "change", ""], shown.map { |row| [SyscallsWords.path(row.name), *figures(row)] }, shown)
      end

      def lines
        rows = @change.lines.reject { |row| row.change.zero? }.first(@limit)
        return [] if rows.empty?

        cells = rows.map { |row| [SyscallsWords.path(@location.text(*row.name)), *figures(row)] }
        columns(["line of Ruby", "before", "after", "change", ""], cells, rows)
      end

      def figures(row) = [Units.count(row.before), Units.count(row.after), SyscallsChange.signed(row.change), SyscallsChange.percent(row)]

      def columns(heads, cells, rows)
        at = heads.size - 2
        styles = rows.map { |row| row.change.zero? ? {} : { at => row.change.negative? ? :green : :red } }
        Columns.new(heads: heads, width: @width, palette: @palette).lines(cells, styles: styles)
      end

      def wrap(text) = Text.wrap(text, @width)
    end
  end
end
