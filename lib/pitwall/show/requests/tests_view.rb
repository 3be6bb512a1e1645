# frozen_string_literal: true

require "pitwall/show/requests/counter_columns"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The durations of tests, the slowest first.
    class TestsView
      NONE = "no tests were recorded: pitwall profile -- CMD knows minitest, RSpec and test-unit (doc/tests.md)"
      BESIDE = "Tests that ran beside others have no objects and no GC of their own."
      private_constant :BESIDE

      # @param width [Numeric] Float::INFINITY: nothing is cut
      # @param file [String] the recording, for the hint
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Numeric, palette: untyped, location: Location, file: String, hints: untyped) -> void
      def initialize(width:, palette:, location:, file:, hints:)
        @hints = hints
        @width = width
        @palette = palette
        @location = location
        @file = file
      end

      # The view's lines.
      # @param rows [Array<Analyse::Tests::Row>]
      # @param sampled [Boolean] whether the recording has samples, so that a test's profile can be shown
      # @param counters [Analyse::WorkCounters, nil] counters of the VM's caches
      #: (Array[Analyse::Tests::Row], ?sampled: bool, ?limit: Integer?, ?counters: Analyse::WorkCounters?)
      #:   -> Array[String]
      def lines(rows, sampled: true, limit: nil, counters: nil)
        return [NONE] if rows.empty?

        shown = limit ? rows.first(limit) : rows
        runs = rows.any? { |row| row.runs > 1 }
        counted = CounterColumns.new(counters, shown.map(&:counters)) if counters&.any?
        heads = TestsView.heads(runs, counted)
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location, cut: :shorten_middle,
                          giving_way: TestsView.giving_way(heads, counted))
        lines = table.lines(shown.map do |row|
          Table::Row.new(numbers: TestsView.numbers(row, runs, counted), name: row.name)
        end)
        notes = [*TestsView.notes(rows, shown), *counted&.notes].flat_map { |note| Text.wrap(note, @width) }
        lines.concat(notes.map { |line| @palette.dim(line) })
        number = shown.filter_map(&:request).first if sampled
        lines.push("", @palette.dim("Next: pitwall report #{@file} #{@hints.request(number)}")) if number
        lines
      end

      # Heads of the columns of numbers, and of the name.
      # @param runs [Boolean] whether any test ran more than once
      #: (bool, ?CounterColumns?) -> Array[String]
      def self.heads(runs, counted = nil)
        ["took", "cpu", "objects", "gc", *counted&.heads, *("runs" if runs), "request", "test"]
      end

      # Columns that a narrow terminal leaves out: the counters, the last one first.
      #: (Array[String], CounterColumns?) -> Array[Integer]
      def self.giving_way(heads, counted)
        counted ? (heads.index("gc") + 1...heads.index("gc") + 1 + counted.heads.size).to_a.reverse : []
      end

      # Cells of the columns of numbers.
      #: (Analyse::Tests::Row, bool, ?CounterColumns?) -> Array[String]
      def self.numbers(row, runs, counted_caches = nil)
        counted = row.objects ? [Units.count(row.objects), Units.duration(row.gc_ns)] : ["", ""]
        [Units.duration(row.duration_ns), Units.duration(row.cpu_ns), *counted, *counted_caches&.cells(row.counters),
         *(Units.count(row.runs) if runs), row.request.to_s]
      end

      # Sentences below the table: "12 tests took 3.20 s."
      #: (Array[Analyse::Tests::Row], Array[Analyse::Tests::Row]) -> Array[String]
      def self.notes(rows, shown)
        part = ", the #{shown.size} slowest #{Units.duration(shown.sum(&:duration_ns))}" if shown.size < rows.size
        all = "#{Units.things(rows.size, "test")} took #{Units.duration(rows.sum(&:duration_ns))}#{part}."
        [all, *(BESIDE if shown.any? { |row| row.objects.nil? })]
      end
    end
  end
end
