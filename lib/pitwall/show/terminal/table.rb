# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # A table of a given width: right-aligned numbers, then a name and a place, which share the rest of the line.
    class Table
      GAP = 2 # columns between two cells
      # Columns that a place gets beside a long name, at least.
      PLACE = 18
      # When name and place have fewer columns than this, a place gets half of them.
      NARROW = 32
      # When name and place have fewer columns than this, number columns are left out. Default of `name`.
      NAME = 24
      # Columns of a name that a long lead leaves, at least.
      BESIDE_LEAD = 8
      private_constant :GAP, :PLACE, :NARROW, :NAME, :BESIDE_LEAD

      # numbers: formatted numbers
      # name:    "" in a row that has only a place
      # place:   [path, line], or nil
      # lead:    text before the name, e.g. the branches of a tree; or nil
      # style:   method of the palette for the row, or nil
      Row = Struct.new(:numbers, :name, :place, :lead, :style, keyword_init: true)

      # @param heads [Array<String>] heads of the number columns and of the name
      # @param location [Location] formats places
      # @param width [Numeric] columns of a line; Float::INFINITY: nothing is cut
      # @param cut [Symbol] the method of Text that cuts names
      # @param giving_way [Array<Integer>] indexes of number columns that may be left out on a narrow terminal; the
      #   first is left out first
      # @param name [Integer] columns that name and place keep before number columns are left out
      #: (heads: Array[String], width: Numeric, palette: untyped, location: Location, ?cut: Symbol,
      #:  ?giving_way: Array[Integer], ?name: Integer) -> void
      def initialize(heads:, width:, palette:, location:, cut: :shorten, giving_way: [], name: NAME)
        @cut = cut
        @name = name
        @giving_way = giving_way
        @heads = heads
        @width = width
        @palette = palette
        @location = location
      end

      # The table's lines, the heads first.
      #: (Array[Row]) -> Array[String]
      def lines(rows)
        columns = number_columns(rows)
        room = [@width - taken(columns), 10].max
        [head(columns)] + rows.map { |row| line(row, columns, room, name_room(rows, room)) }
      end

      private

      # The number columns that are shown: index → width.
      def number_columns(rows)
        columns = (0...@heads.size - 1).to_h do |at|
          [at, [Text.width(@heads[at]), *rows.map { |row| Text.width(row.numbers[at]) }].max]
        end
        @giving_way.each { |at| columns.delete(at) if taken(columns) > @width - @name }
        columns
      end

      def taken(columns) = columns.each_value.sum { |column| column + GAP }

      def head(columns)
        numbers = columns.map { |at, column| Text.right(@heads[at], column) + " " * GAP }.join
        @palette.dim((numbers + @heads.last).rstrip)
      end

      # Columns for names: as many as the names need, but some are reserved for places.
      def name_room(rows, room)
        @name_room ||= begin
          names = rows.map { |row| Text.width(row.lead.to_s) + Text.width(Text.safe(row.name)) }.max || 0
          places = rows.map { |row| row.place ? Text.width(@location.text(*row.place)) : 0 }.max || 0
          reserved = [places, room < NARROW ? room / 2 : PLACE, room / 3].sort[1].clamp(0, places)
          [names, [room - GAP - reserved, 8].max].min
        end
      end

      def line(row, columns, room, name_room)
        numbers = columns.map { |at, column| Text.right(row.numbers[at], column) + " " * GAP }
        return style(row.style, numbers.join + @location.fit(*row.place, room)) if row.name.empty? && row.place

        own_room = row.place.nil? || row.place[0].empty? ? room : name_room
        lead = Text.shorten_left(row.lead.to_s, [own_room - [Text.width(row.name), BESIDE_LEAD].min, 0].max)
        name = Text.public_send(@cut, row.name, [own_room - Text.width(lead), 4].max)
        taken = [name_room, Text.width(lead) + Text.width(name)].max
        place = row.place ? @location.fit(*row.place, room - GAP - taken) : ""
        text = style(row.style, numbers.join) + @palette.dim(lead) + style(row.style, name)
        return text.rstrip if place.empty?

        text + " " * (name_room - Text.width(lead) - Text.width(name) + GAP).clamp(GAP, room) + @palette.dim(place)
      end

      def style(style, text) = style ? @palette.public_send(style, text) : text
    end
  end
end
