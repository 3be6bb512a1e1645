# frozen_string_literal: true

require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Callers or callees of a method, in shares of the whole and of the method's total.
    class NeighboursView
      # @param hints [Views::Hints] options that notes suggest
      #: (weight: Symbol, total: Integer, width: Integer, palette: untyped, location: Location, hints: untyped) -> void
      def initialize(weight:, total:, width:, palette:, location:, hints:)
        @hints = hints
        @weight = weight
        @total = total
        @width = width
        @palette = palette
        @location = location
      end

      # @param methods [Array<Analyse::MethodInfo>] those that the name stands for
      # @param kind [Symbol] :callers or :callees
      #: (Symbol, Array[Analyse::MethodInfo], Analyse::Neighbours::Result, ?limit: Integer?) -> Array[String]
      def lines(kind, methods, result, limit: nil)
        rows = limit ? result.rows.first(limit) : result.rows
        heads = ["of all", "of it", Units.sum_name(@weight), *("calls" if result.calls), kind.to_s.delete_suffix("s")]
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location)
        body = rows.map { |row| table_row(row.total, result.total, row.method, calls: row.calls) }
        body.unshift(itself(result)) if kind == :callees && result.own.positive?
        lines = title(methods, result) + table.lines(body)
        return lines if rows.size == result.rows.size

        lines << @palette.dim("#{result.rows.size - rows.size} more (#{@hints.rows(result.rows.size)})")
      end

      private

      def itself(result) = table_row(result.own, result.total, nil, name: "(itself)", calls: result.calls && "")

      def title(methods, result)
        first = methods.first
        name = Text.shorten(first.name, @width)
        name += " and #{methods.size - 1} more of that name" if methods.size > 1
        place = @location.fit(*first.where, @width - Text.width(name) - 2)
        where = "  #{@palette.dim(place)}" unless place.empty?
        ["#{@palette.bold(Text.shorten_right(name, @width))}#{where}", *Text.wrap(totals(result), @width), ""]
      end

      def totals(result)
        called = "called #{Units.things(result.calls, "time")}; " if result.calls
        share = Units.percent(result.total, @total)
        calls = Units.things(result.total, "call")
        return "#{called}#{calls} with those below it, #{share} of all" if @weight == :calls

        "#{called}total #{share} (#{Units.value(result.total, @weight)}), " \
          "self #{Units.percent(result.own, @total)} (#{Units.value(result.own, @weight)}); " \
          "recursion counted once#{" in these" if called}"
      end

      # calls: how often one called the other; "" where that is no question, nil where it isn't known.
      def table_row(total, whole, method, calls:, name: nil)
        calls = Units.count(calls) if calls.is_a?(Integer)
        numbers = [Units.percent(total, @total), Units.percent(total, whole), Units.value(total, @weight), *calls]
        name ||= method ? method.name : "(nothing: it is where a thread starts)"
        Table::Row.new(numbers: numbers, name: name, place: method&.where)
      end
    end
  end
end
