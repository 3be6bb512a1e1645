# frozen_string_literal: true

require "pitwall/analyse/requests/queries"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Queries to databases by the application's line that asked.
    class QueriesView
      NONE = "no queries were recorded: pitwall profile -- CMD counts those of ActiveRecord and Sequel (doc/queries.md)"
      UNKNOWN = "(no line of the application)"
      KINDS = { Analyse::Queries::CACHED => " (cached)", Analyse::Queries::SCHEMA => " (schema)" }.freeze
      # Lines of one request in a report of it.
      FEW = 5
      # Columns that give way where it is narrow: the digest, the share, the most of one request.
      GIVING_WAY = [5, 4, 2].freeze
      private_constant :UNKNOWN, :KINDS, :FEW, :GIVING_WAY

      # @param width [Numeric] Float::INFINITY: nothing is cut
      #: (width: Numeric, palette: untyped, location: Location, ?file: String?) -> void
      def initialize(width:, palette:, location:, file: nil)
        @width = width
        @palette = palette
        @location = location
        @file = file
      end

      # @param rows [Array<Analyse::Queries::Row>]
      # @param total [Analyse::Queries::Total]
      # @param drivers [Array(Integer, Integer), nil] time in the drivers' methods, and what it is a part of, where nothing was counted
      #: (Array[Analyse::Queries::Row], Analyse::Queries::Total, ?drivers: [Integer, Integer]?, ?limit: Integer?) -> Array[String]
      def lines(rows, total, drivers: nil, limit: nil)
        return Text.wrap([NONE, *QueriesView.drivers(drivers)].join(". "), @width) if rows.empty?

        shown = limit ? rows.first(limit) : rows
        more = "#{Units.things(rows.size - shown.size, "more row")} (--limit #{rows.size} shows all)" if shown.size < rows.size
        notes = [more, QueriesView.total(total), QueriesView::MEANING].compact
        [*table(shown, total), *notes.flat_map { |note| Text.wrap(note, @width) }.map { |line| @palette.dim(line) }]
      end

      # What one request asked, shortly.
      # @param rows [Array<Analyse::Queries::Row>]
      #: (Array[Analyse::Queries::Row], Integer) -> Array[String]
      def of_request(rows, duration_ns)
        return [] if rows.empty?

        sum = Analyse::Queries.sum(rows)
        total = Analyse::Queries::Total.new(1, sum.count, sum.ns, sum.cached, sum.schema, duration_ns)
        heading = "Its queries: #{QueriesView.counted(sum)}, #{Units.duration(sum.ns)} (#{Units.percent(sum.ns, duration_ns)} of its time)"
        more = rows.size > FEW ? [@palette.dim("#{Units.things(rows.size - FEW, "more row")}: --view queries")] : []
        [*Text.wrap(heading, @width).map { |line| @palette.bold(line) }, *table(rows.first(FEW), total), *more, ""]
      end

      MEANING = "A query is told from others by its line and by a digest of its text without values; times are the database's and the driver's."

      # "213 (200 of them the same from one line), 3 cached"
      #: (Analyse::Queries::Sum) -> String
      def self.counted(sum)
        [Units.count(sum.count) + (sum.repeats > 1 ? " (the same from one line up to #{Units.count(sum.repeats)} times)" : ""),
         *("#{Units.count(sum.cached)} answered by a cache" if sum.cached.positive?),
         *("#{Units.count(sum.schema)} of the schema" if sum.schema.positive?)].join(", ")
      end

      # "2,030 queries in 20 requests (101.5 a request), 98.6 ms: 11% of the requests' time; 3 answered by a cache"
      #: (Analyse::Queries::Total) -> String
      def self.total(total)
        a_request = " in #{Units.things(total.requests, "request")} (#{mean(total.mean)} a request)" if total.mean
        beside = { "answered by a cache" => total.cached, "of the schema" => total.schema }.select { |_, count| count.positive? }
        whole = total.mean ? "the requests' time" : "the time"
        ["#{Units.count(total.count)} #{total.count == 1 ? "query" : "queries"}#{a_request}, #{Units.duration(total.ns)}: #{Units.percent(total.ns, total.of_ns)} of #{whole}",
         *beside.map { |words, count| "#{Units.count(count)} #{words}" }].join("; ")
      end

      # What is known of queries that nobody counted.
      #: ([Integer, Integer]?) -> Array[String]
      def self.drivers(drivers)
        drivers ? ["#{Units.percent(*drivers)} of the time (#{Units.duration(drivers.first)}) is in methods of a database's driver; such queries are not counted"] : []
      end

      # 101.5, 0.3, 200
      #: (Float) -> String
      def self.mean(mean) = mean == mean.round || mean >= 1000 ? Units.count(mean.round) : format("%.1f", mean)

      # Of the numbers, then of the place.
      #: () -> Array[String]
      def self.heads = ["queries", "a request", "most", "time", "share", "query"]

      #: (Analyse::Queries::Row, Analyse::Queries::Total) -> Array[String]
      def self.numbers(row, total)
        works = row.requests.zero? ? ["", ""] : [mean(row.count.fdiv(row.requests)), Units.count(row.most)]
        [Units.count(row.count), *works, Units.duration(row.ns), share(row, total), row.short]
      end

      # Of requests, where there are any: what was asked outside of them is no part of their time.
      #: (Analyse::Queries::Row, Analyse::Queries::Total) -> String
      def self.share(row, total) = row.ns.zero? || (row.requests.zero? && total.mean) ? "" : Units.percent(row.ns, total.of_ns)

      # "Shop#page (cached)"
      #: (Analyse::Queries::Row) -> String
      def self.name(row) = "#{row.method ? row.method.name : UNKNOWN}#{KINDS[row.kind]}"

      private

      def table(rows, total)
        table = Table.new(heads: [*QueriesView.heads, "line"], width: @width, palette: @palette, location: @location, cut: :shorten_middle, giving_way: GIVING_WAY)
        table.lines(rows.map { |row| Table::Row.new(numbers: QueriesView.numbers(row, total), name: QueriesView.name(row), place: [row.path, row.line]) })
      end
    end
  end
end
