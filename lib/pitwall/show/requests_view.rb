# frozen_string_literal: true

require "pitwall/show/table"
require "pitwall/show/units"

module Pitwall
  module Show
    # The slowest requests and jobs, with the numbers by which they are asked for.
    class RequestsView
      # Columns of a thread's name at most, and the share of the width.
      THREAD = 20
      THREAD_SHARE = 5
      private_constant :THREAD, :THREAD_SHARE

      # @param width [Numeric] Float::INFINITY: nothing is cut
      #: (width: Numeric, palette: untyped, location: Location, file: String) -> void
      def initialize(width:, palette:, location:, file:)
        @width = width
        @palette = palette
        @location = location
        @file = file
      end

      # @param count [Integer] all that ended
      # @param rows [Array<Analyse::Requests::Row>]
      #: (Array[Analyse::Requests::Row], count: Integer, ?limit: Integer?) -> Array[String]
      def lines(rows, count:, limit: nil)
        return ["no requests were marked: Pitwall::Rack::Requests and Pitwall.request do that (doc/servers.md)"] if rows.empty?

        shown = limit ? rows.first(limit) : rows
        several = rows.map(&:pid).uniq.size > 1
        threads = shown.map { |row| thread(row) }
        wide = ["thread", *threads].map { |name| Text.width(name) }.max
        table = Table.new(heads: ["request", "took", "began after", *("process" if several), "#{Text.left("thread", wide)}  what"],
                          width: @width, palette: @palette, location: @location, cut: :shorten_middle)
        lines = table.lines(shown.zip(threads).map { |row, thread| table_row(row, several, "#{Text.left(thread, wide)}  ") })
        lines << @palette.dim("of #{Units.things(count, "request")} that ended; of each second the slowest are known one by one")
        lines.push("", @palette.dim("Next: pitwall report #{@file} --request #{shown.first.number} --tree"))
      end

      private

      # Short, so that the labels have the room.
      def thread(row)
        name = row.thread.name.empty? ? "thread #{row.thread.id}" : row.thread.name
        Text.shorten_middle(name, @width.finite? ? [THREAD, @width / THREAD_SHARE].min : @width)
      end

      def table_row(row, several, thread)
        numbers = [row.number.to_s, Units.duration(row.duration_ns), Units.duration([row.start_ns, 0].max), *(row.pid.to_s if several)]
        Table::Row.new(numbers: numbers, lead: thread, name: row.name.empty? ? "(without labels)" : row.name)
      end
    end
  end
end
