# frozen_string_literal: true

require "pitwall/analyse/requests/queries"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Queries to databases, by the line of the application that ran them.
    class QueriesView
      NONE = "no queries were recorded: pitwall profile -- CMD counts those of ActiveRecord and Sequel (doc/queries.md)"
      UNKNOWN = "(no line of the application)"
      KINDS = { Analyse::Queries::CACHED => " (cached)", Analyse::Queries::SCHEMA => " (schema)" }.freeze
      # Rows of the table about a single request.
      FEW = 5
      # Columns left out on a narrow terminal, in this order: the digest, the share, the most queries of one request.
      GIVING_WAY = [5, 4, 2].freeze
      private_constant :UNKNOWN, :KINDS, :FEW, :GIVING_WAY

      # @param width [Numeric] Float::INFINITY: nothing is cut
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Numeric, palette: untyped, location: Location, hints: untyped, ?file: String?) -> void
      def initialize(width:, palette:, location:, hints:, file: nil)
        @hints = hints
        @width = width
        @palette = palette
        @location = location
        @file = file
      end

      # The view's lines.
      # @param rows [Array<Analyse::Queries::Row>]
      # @param total [Analyse::Queries::Total]
      # @param drivers [Array(Integer, Integer), nil] without counted queries: ns in methods of database drivers, and ns
      #   of the whole
      #: (Array[Analyse::Queries::Row], Analyse::Queries::Total, ?drivers: [Integer, Integer]?, ?limit: Integer?)
      #:   -> Array[String]
      def lines(rows, total, drivers: nil, limit: nil)
        return Text.wrap([NONE, *QueriesView.drivers(drivers)].join(". "), @width) if rows.empty?

        shown = limit ? rows.first(limit) : rows
        if shown.size < rows.size
          more = "#{Units.things(rows.size - shown.size, "more row")} (#{@hints.rows(rows.size)})"
        end

        notes = [more, QueriesView.total(total), QueriesView::MEANING].compact
        [*table(shown, total), *notes.flat_map { |note| Text.wrap(note, @width) }.map { |line| @palette.dim(line) }]
      end

      # A short table of one request's queries.
      # @param rows [Array<Analyse::Queries::Row>] the request's queries
      # @param duration_ns [Integer] the request's duration
      #: (Array[Analyse::Queries::Row], Integer) -> Array[String]
      def of_request(rows, duration_ns)
        return [] if rows.empty?

        sum = Analyse::Queries.sum(rows)
        total = Analyse::Queries::Total.new(1, sum.count, sum.ns, sum.cached, sum.schema, duration_ns)
        heading = "Its queries: #{QueriesView.counted(sum)}, " \
                  "#{Units.duration(sum.ns)} (#{Units.percent(sum.ns, duration_ns)} of its time)"
        more = "#{Units.things(rows.size - FEW, "more row")}: #{@hints.queries}" if rows.size > FEW
        [*Text.wrap(heading, @width).map { |line| @palette.bold(line) }, *table(rows.first(FEW), total),
         *(@palette.dim(more) if more), ""]
      end

      # Explanation shown below the table.
      MEANING = "A query is told from others by its line and by a digest of its text without values; " \
                "times are the database's and the driver's."

      # Numbers of queries: "213 (the same from one line up to 200 times), 3 answered by a cache".
      #: (Analyse::Queries::Sum) -> String
      def self.counted(sum)
        repeats = " (the same from one line up to #{Units.count(sum.repeats)} times)" if sum.repeats > 1
        ["#{Units.count(sum.count)}#{repeats}",
         *("#{Units.count(sum.cached)} answered by a cache" if sum.cached.positive?),
         *("#{Units.count(sum.schema)} of the schema" if sum.schema.positive?)].join(", ")
      end

      # The sum of all queries:
      # "2,030 queries in 20 requests (101.5 a request), 98.6 ms: 11% of the requests' time; 3 answered by a cache"
      #: (Analyse::Queries::Total) -> String
      def self.total(total)
        a_request = " in #{Units.things(total.requests, "request")} (#{mean(total.mean)} a request)" if total.mean
        others = { "answered by a cache" => total.cached, "of the schema" => total.schema }
        others = others.select { |_, count| count.positive? }
        whole = total.mean ? "the requests' time" : "the time"
        ["#{Units.count(total.count)} #{total.count == 1 ? "query" : "queries"}#{a_request}, " \
         "#{Units.duration(total.ns)}: #{Units.percent(total.ns, total.of_ns)} of #{whole}",
         *others.map { |words, count| "#{Units.count(count)} #{words}" }].join("; ")
      end

      # A sentence about time in methods of database drivers, for recordings without counted queries; none without such
      # time.
      # @param drivers ns in the drivers' methods, and ns of the whole
      #: ([Integer, Integer]?) -> Array[String]
      def self.drivers(drivers)
        return [] unless drivers

        ["#{Units.percent(*drivers)} of the time (#{Units.duration(drivers.first)}) is in methods of a " \
         "database's driver; such queries are not counted"]
      end

      # A mean number with at most one decimal: "101.5", "0.3", "200".
      #: (Float) -> String
      def self.mean(mean) = mean == mean.round || mean >= 1000 ? Units.count(mean.round) : format("%.1f", mean)

      # Heads of the columns of numbers, and of the digest.
      #: () -> Array[String]
      def self.heads = ["queries", "a request", "most", "time", "share", "query"]

      # Cells for {heads}.
      #: (Analyse::Queries::Row, Analyse::Queries::Total) -> Array[String]
      def self.numbers(row, total)
        works = row.requests.zero? ? ["", ""] : [mean(row.count.fdiv(row.requests)), Units.count(row.most)]
        [Units.count(row.count), *works, Units.duration(row.ns), share(row, total), row.short]
      end

      # A row's share of the time. "" in a recording with requests for queries outside of requests: their time is no
      # part of the requests' time.
      #: (Analyse::Queries::Row, Analyse::Queries::Total) -> String
      def self.share(row, total)
        row.ns.zero? || (row.requests.zero? && total.mean) ? "" : Units.percent(row.ns, total.of_ns)
      end

      # A row's method, with the kind of the query: "Shop#page (cached)".
      #: (Analyse::Queries::Row) -> String
      def self.name(row) = "#{row.method ? row.method.name : UNKNOWN}#{KINDS[row.kind]}"

      private

      def table(rows, total)
        table = Table.new(heads: [*QueriesView.heads, "line"], width: @width, palette: @palette, location: @location,
                          cut: :shorten_middle, giving_way: GIVING_WAY)
        table_rows = rows.map do |row|
          Table::Row.new(numbers: QueriesView.numbers(row, total), name: QueriesView.name(row),
                         place: [row.path, row.line])
        end
        table.lines(table_rows)
      end
    end
  end
end
