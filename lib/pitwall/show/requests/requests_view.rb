# frozen_string_literal: true

require "pitwall/analyse/requests/queries"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The slowest requests and jobs, with the numbers by which they are asked for.
    class RequestsView
      # Columns of a thread's name at most, and the share of the width.
      THREAD = 20
      THREAD_SHARE = 5
      # Columns that give way to those of queries where it is narrow: when it began, its process, the part of the time.
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

      # @param count [Integer, nil] all that ended, nil: not known
      # @param rows [Array<Analyse::Requests::Row>]
      # @param asked [#call, nil] row → its Analyse::Queries::Row; nil: queries were not counted
      # @param notes [Array<String>] of the queries of all
      #: (Array[Analyse::Requests::Row], count: Integer?, ?limit: Integer?, ?asked: untyped, ?notes: Array[String]) -> Array[String]
      def lines(rows, count:, limit: nil, asked: nil, notes: [])
        return [NONE] if rows.empty?

        shown = limit ? rows.first(limit) : rows
        @several = rows.map(&:pid).uniq.size > 1
        threads = shown.map { |row| thread(row) }
        wide = ["thread", *threads].map { |name| Text.width(name) }.max
        table = Table.new(heads: [*heads(asked), "#{Text.left("thread", wide)}  what"], giving_way: asked ? GIVING_WAY : [],
                          width: @width, palette: @palette, location: @location, cut: :shorten_middle)
        lines = table.lines(shown.zip(threads).map { |row, thread| table_row(row, asked, "#{Text.left(thread, wide)}  ") })
        known = "of each second the slowest are known one by one"
        told = [count ? "of #{Units.things(count, "request")} that ended; #{known}" : known, *notes]
        lines.concat(told.flat_map { |text| Text.wrap(text, @width) }.map { |line| @palette.dim(line) })
        lines.push("", @palette.dim("Next: pitwall report #{@file} --request #{shown.first.number} --tree"))
      end

      # Of the numbers.
      #: (untyped) -> Array[String]
      def heads(asked) = ["request", "took", "began after", *(["queries", "repeats", "sql"] if asked), *("process" if @several)]

      #: (Analyse::Requests::Row, untyped) -> Array[String]
      def numbers(row, asked)
        [row.number.to_s, Units.duration(row.duration_ns), Units.duration([row.start_ns, 0].max), *(queries(row, asked) if asked), *(row.pid.to_s if @several)]
      end

      private

      # How many, how often the same from one line, and their part of the time.
      def queries(row, asked)
        sum = Analyse::Queries.sum(asked.call(row))
        return [Units.count(sum.count), "", ""] if sum.count.zero? && sum.cached.zero?

        [Units.count(sum.count), sum.repeats > 1 ? Units.count(sum.repeats) : "", Units.percent(sum.ns, row.duration_ns)]
      end

      # Short, so that the labels have the room.
      def thread(row)
        name = row.thread.title
        Text.shorten_middle(name, @width.finite? ? [THREAD, @width / THREAD_SHARE].min : @width)
      end

      def table_row(row, asked, thread)
        Table::Row.new(numbers: numbers(row, asked), lead: thread, name: row.name.empty? ? "(without labels)" : row.name)
      end
    end
  end
end
