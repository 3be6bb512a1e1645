# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Aligned columns in a given width: numbers to the right, then a name and a place that share what is left.
    class Table
      GAP = 2
      # Columns that a place gets at least, when it needs them, beside a long name.
      PLACE = 18
      # Of less room a place gets half.
      NARROW = 32
      # What names and places have left before numbers give way, unless more is asked for.
      NAME = 24
      private_constant :GAP, :PLACE, :NARROW, :NAME

      # A row: numbers already formatted; name, "" where the place is all there is; place as [path, line]; lead: what stands before the name; style: of the row.
      Row = Struct.new(:numbers, :name, :place, :lead, :style, keyword_init: true)

      # @param heads [Array<String>] of the number columns, then of the name
      # @param location [Location]
      # @param width [Numeric] Float::INFINITY: nothing is cut
      # @param cut [Symbol] of Text, what cuts a name
      # @param giving_way [Array<Integer>] number columns that are left out, the first first, where names have no room
      # @param name [Integer] columns that names and places keep
      #: (heads: Array[String], width: Numeric, palette: untyped, location: Location, ?cut: Symbol, ?giving_way: Array[Integer], ?name: Integer) -> void
      def initialize(heads:, width:, palette:, location:, cut: :shorten, giving_way: [], name: NAME)
        @cut = cut
        @name = name
        @giving_way = giving_way
        @heads = heads
        @width = width
        @palette = palette
        @location = location
      end

      #: (Array[Row]) -> Array[String]
      def lines(rows)
        columns = number_columns(rows)
        room = [@width - taken(columns), 10].max
        [head(columns)] + rows.map { |row| line(row, columns, room, name_room(rows, room)) }
      end

      private

      # Width of each number column that is shown, by its place.
      def number_columns(rows)
        columns = Array.new(@heads.size - 1) { |at| [at, [Text.width(@heads[at]), *rows.map { |row| Text.width(row.numbers[at]) }].max] }.to_h
        @giving_way.each { |at| columns.delete(at) if taken(columns) > @width - @name }
        columns
      end

      def taken(columns) = columns.each_value.sum { |column| column + GAP }

      def head(columns)
        numbers = columns.map { |at, column| Text.right(@heads[at], column) + " " * GAP }.join
        @palette.dim((numbers + @heads.last).rstrip)
      end

      # Names get what they need, but leave room for the places.
      def name_room(rows, room)
        @name_room ||= begin
          names = rows.map { |row| Text.width(row.lead.to_s) + Text.width(Text.safe(row.name)) }.max || 0
          places = rows.map { |row| row.place ? Text.width(@location.text(*row.place)) : 0 }.max || 0
          [names, [room - GAP - [places, room < NARROW ? room / 2 : PLACE, room / 3].sort[1].clamp(0, places), 8].max].min
        end
      end

      def line(row, columns, room, name_room)
        numbers = columns.map { |at, column| Text.right(row.numbers[at], column) + " " * GAP }
        return style(row.style, numbers.join + @location.fit(*row.place, room)) if row.name.empty? && row.place

        lead = row.lead.to_s
        own_room = row.place.nil? || row.place[0].empty? ? room : name_room
        name = Text.public_send(@cut, row.name, [own_room - Text.width(lead), 4].max)
        place = row.place ? @location.fit(*row.place, room - GAP - [name_room, Text.width(lead) + Text.width(name)].max) : ""
        text = style(row.style, numbers.join) + @palette.dim(lead) + style(row.style, name)
        return text.rstrip if place.empty?

        text + " " * (name_room - Text.width(lead) - Text.width(name) + GAP).clamp(GAP, room) + @palette.dim(place)
      end

      def style(style, text) = style ? @palette.public_send(style, text) : text
    end
  end
end
