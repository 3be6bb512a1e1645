# frozen_string_literal: true

require "pitwall/analyse/requests/queries"
require "pitwall/show/requests/counter_columns"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The slowest requests and jobs. Each has a number for the option --request.
    class RequestsView
      # Columns of a thread's name, at most.
      THREAD = 20
      # A thread's name takes at most this part of the width: a fifth.
      THREAD_SHARE = 5
      # Columns left out on a narrow terminal, in this order: start, process, the queries' share of the time.
      GIVING_WAY = [2, 6, 5].freeze
      NONE = "no requests were marked: Pitwall::Rack::Requests and Pitwall.request do that (doc/servers.md)"
      private_constant :THREAD, :THREAD_SHARE, :GIVING_WAY

      # @param width [Numeric] Float::INFINITY: nothing is cut
      #: (width: Numeric, palette: untyped, location: Location, file: String) -> void
      def initialize(width:, palette:, location:, file:)
        @width = width
        @palette = palette
        @location = location
        @file = file
      end

      # The view's lines.
      # @param rows [Array<Analyse::Requests::Row>]
      # @param count [Integer, nil] number of all requests that ended; nil: unknown
      # @param asked [#call, nil] request → its rows of queries (Analyse::Queries::Row); nil: queries were not counted
      # @param notes [Array<String>] notes about the queries of all requests
      # @param hints [Views::Hints] options that notes suggest
      # @param counters [Analyse::WorkCounters, nil] counters of the VM's caches
      #: (Array[Analyse::Requests::Row], count: Integer?, hints: untyped, ?limit: Integer?, ?asked: untyped,
      #:  ?notes: Array[String], ?counters: Analyse::WorkCounters?) -> Array[String]
      def lines(rows, count:, hints:, limit: nil, asked: nil, notes: [], counters: nil)
        return [NONE] if rows.empty?

        shown = limit ? rows.first(limit) : rows
        count_caches(counters, shown)
        @several = rows.map(&:pid).uniq.size > 1
        threads = shown.map { |row| thread(row) }
        wide = ["thread", *threads].map { |name| Text.width(name) }.max
        table = Table.new(heads: [*heads(asked), "#{Text.left("thread", wide)}  what"],
                          giving_way: giving_way(asked),
                          width: @width, palette: @palette, location: @location, cut: :shorten_middle)
        table_rows = shown.zip(threads).map do |row, thread|
          table_row(row, asked, "#{Text.left(thread, wide)}  ")
        end
        lines = table.lines(table_rows)
        known = "of each second the slowest are known one by one"
        known = "of #{Units.things(count, "request")} that ended; #{known}" if count
        notes = [known, *notes, *@counted&.notes].flat_map { |text| Text.wrap(text, @width) }
        lines.concat(notes.map { |line| @palette.dim(line) })
        lines.push("", @palette.dim("Next: pitwall report #{@file} #{hints.request(shown.first.number)}"))
      end

      # Heads of the columns of numbers.
      # @param asked as for {lines}
      #: (untyped) -> Array[String]
      def heads(asked)
        ["request", "took", "began after", *(["queries", "repeats", "sql"] if asked), *("process" if @several),
         *@counted&.heads]
      end

      # Adds columns of counters of the VM's caches.
      # @param counters [Analyse::WorkCounters, nil]
      # @return [CounterColumns, nil]
      #: (Analyse::WorkCounters?, Array[Analyse::Requests::Row]) -> CounterColumns?
      def count_caches(counters, shown)
        return unless counters&.any?

        @increases = shown.to_h { |row| [row, counters.of_request(row)] }.compare_by_identity
        @counted = CounterColumns.new(counters, @increases.values)
      end

      # Cells for {heads}.
      # @param asked as for {lines}
      #: (Analyse::Requests::Row, untyped) -> Array[String]
      def numbers(row, asked)
        [row.number.to_s, Units.duration(row.duration_ns), Units.duration([row.start_ns, 0].max),
         *(queries(row, asked) if asked), *(row.pid.to_s if @several), *@counted&.cells(@increases.fetch(row))]
      end

      private

      # On a narrow terminal the counters go first, then the columns of GIVING_WAY.
      def giving_way(asked)
        last = heads(asked).size
        first = last - (@counted ? @counted.heads.size : 0)
        [*(first...last).to_a.reverse, *(GIVING_WAY if asked)]
      end

      # Number of queries, most repetitions of the same query from one line, and the queries' share of the time.
      def queries(row, asked)
        sum = Analyse::Queries.sum(asked.call(row))
        return [Units.count(sum.count), "", ""] if sum.count.zero? && sum.cached.zero?

        repeats = sum.repeats > 1 ? Units.count(sum.repeats) : ""
        [Units.count(sum.count), repeats, Units.percent(sum.ns, row.duration_ns)]
      end

      # A thread's name, shortened to leave room for the labels.
      def thread(row)
        name = row.thread.title
        Text.shorten_middle(name, @width.finite? ? [THREAD, @width / THREAD_SHARE].min : @width)
      end

      def table_row(row, asked, thread)
        name = row.name.empty? ? "(without labels)" : row.name
        Table::Row.new(numbers: numbers(row, asked), lead: thread, name: name)
      end
    end
  end
end
