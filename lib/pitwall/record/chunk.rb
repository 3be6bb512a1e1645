# frozen_string_literal: true

require "pitwall/record/columns"
require "pitwall/record/limits"
require "pitwall/record/malformed"
require "pitwall/record/segment"

module Pitwall
  module Record
    # What a reader shows for a name that was lost with a damaged part of the file.
    LOST_NAME = "(lost name)"
    private_constant :LOST_NAME

    # A chunk type: one subclass, in one file of record/chunks/. The subclass declares its four letters, its limits and
    # what it offers to readers of a Segment. Each segment of a file has one object of each subclass; the object reads
    # the segment's chunks of its type and holds their table.
    #
    #   class Marks < Chunk
    #     type "MARK"
    #     limit :marks, 2_000_000
    #     offers :marks             # adds Segment#marks
    #
    #     def read_columns(columns) # called once for each MARK chunk
    #
    # A chunk is checked whole before anything of it is kept, so that salvage can drop it whole. Files of chunk types do
    # not require each other: record/chunks.rb loads them all before anything is read.
    # @api private
    class Chunk
      class << self
        # The four letters in the file; called with a name, declares them.
        #: (?String) -> String
        def type(name = nil)
          @type = name.freeze if name
          @type
        end

        # Declares how many entries all segments of a file may hold together. The chunk takes them with #take. Other
        # chunk types may take from the same limit.
        #: (Symbol, Integer) -> void
        def limit(name, most) = limits[name] = most

        # @return [Hash{Symbol => Integer}] declared limits by name
        #: () -> Hash[Symbol, Integer]
        def limits = @limits ||= {}

        # Declares what a Segment gets of this chunk, by reader methods of the Segment. The chunk holds it in the
        # instance variable of that name, or gives it in #parts.
        #: (*Symbol) -> void
        def offers(*names)
          Segment.attr_reader(*names)
          offered.concat(names)
        end

        # @return [Array<Symbol>] names of the declared readers
        #: () -> Array[Symbol]
        def offered = @offered ||= []
      end

      # @return [Integer] entries that other chunks name and the file no longer has
      attr_reader :lost

      # @param tables [Hash{Class => Chunk}] the segment's objects of all chunk types; filled after this call
      # @param salvage [Boolean] accept what names lost entries
      #: (Hash[Class, Chunk], Budget, salvage: bool) -> void
      def initialize(tables, budget, salvage:)
        @tables = tables
        @budget = budget
        @salvage = salvage
        @lost = 0
      end

      # Reads one chunk. Subclasses define this method, or read_columns(columns) where the payload consists of columns.
      # @param offset [Integer] where the chunk starts in the file
      # @raise [Malformed]
      #: (String, Integer) -> void
      def read(payload, _offset) = read_columns(Columns.new(payload))

      # Called once after the segment's last chunk.
      # @param payload_at [Proc] reads the payload of the chunk at an offset again
      # @raise [Malformed]
      #: (^(Integer) -> String) -> void
      def settle(payload_at); end

      # Values of the Segment's instance variables, by name. Called after all chunk types have settled.
      #: () -> Hash[Symbol, untyped]
      def parts = self.class.offered.to_h { |name| [name, instance_variable_get(:"@#{name}")] }

      # What readers should know of this table: codes of a Warning with words about the process.
      #: () -> Array[[Symbol, String]]
      def warnings = []

      private

      # The segment's object of another chunk type.
      #: (Class) -> Chunk
      def table(type) = @tables.fetch(type)

      #: () -> bool
      def salvage? = @salvage

      # @raise [Malformed] when there is no room for `count` more
      def take(name, count) = @budget.take(name, count)

      def lose(count = 1)
        @lost += count
      end

      # The columns of a chunk that starts with the number of its rows and has one column for each member of `struct`.
      # @param later [Array<Symbol>] the last members. Older recordings lack their columns: all values are 0 then
      # @return [Array<Array<Integer>>]
      def columns_of(columns, struct, later: [])
        count = columns.int
        struct.members.map do |name|
          next Array.new(count, 0) if later.include?(name) && !columns.more?

          columns.column(count, name.to_s.tr("_", " "))
        end
      end

      # Puts strings in the place of string ids.
      # @param rows [Array<Struct>]
      # @param members [Array<Symbol>] members of a row that hold a string id
      def name_strings(rows, *members)
        strings = table(Chunks::Strings)
        rows.each { |row| members.each { |member| row[member] = strings.known(row[member]) } }
      end

      # @param values [Array<Array<Integer>>] columns in the order of the struct's members
      # @return [Struct] of one row
      def build(struct, values, at) = struct.new(*values.map { |column| column[at] })

      # Transposes once: faster than {build} for each row.
      # @return [Array<Struct>] of all rows
      def build_all(struct, values) = values.transpose.map { |row| struct.new(*row) }

      # Keeps the last row of each key, for tables whose rows replace earlier ones. New keys count towards a limit.
      # Counting them beforehand takes time, so this is done near the limit only.
      # @param keys [Array] the key of each row
      # @yield [at] makes the row at that position
      # @raise [Malformed]
      def keep_last(kept, keys, limit)
        unless @budget.room?(limit, keys.size)
          added = keys.reject { |key| kept.key?(key) }.uniq.size
          take(limit, added) unless @budget.room?(limit, added)
        end
        before = kept.size
        keys.each_with_index { |key, at| kept[key] = yield at }
        take(limit, kept.size - before)
      end

      # Ids count up without gaps, except where salvage skipped a chunk.
      # @raise [Malformed]
      def expect_next(first, expected, noun)
        return if first == expected || salvage? && first.between?(expected, expected + Limits::GAP)

        raise Malformed, "continues with #{noun} #{first} where #{expected} is next"
      end
    end
    private_constant :Chunk
  end
end
