# frozen_string_literal: true

require "pitwall/show/allocations/objects_text"
require "pitwall/show/profile/header_view"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Allocations as text: the totals, the table, and the next commands to try.
    class AllocationsText < ObjectsText
      FRAMES = 12 # frames of a stack below its row, at most
      MODEL = "GC charged is a model: each collection's time is divided among the places that allocated " \
              "since the one before, by objects or, where malloc'ed memory caused it, by estimated bytes"
      HEADS = { objects: "objects", share: "", old: "old", retained: "retained", age: "age", bytes: "bytes",
                gc: "GC charged" }.freeze
      # The heads with --retained: the retained bytes come first, and shares are parts of them.
      RETAINED_HEADS = { retained_bytes: "retained bytes", share: "" }
                       .merge(HEADS.slice(:retained, :objects, :old, :age, :bytes, :gc)).freeze
      # Columns left out on a narrow terminal, except for the column that rows are sorted by. --format json has all.
      GIVING_WAY = %i[age old retained gc].freeze
      RETAINED_GIVING_WAY = %i[age old gc objects].freeze
      SORTED = { old: :old, retained: :retained, total_age: :age, max_age: :age, min_age: :age, gc_ns: :gc }.freeze
      private_constant :FRAMES, :HEADS, :RETAINED_HEADS, :GIVING_WAY, :RETAINED_GIVING_WAY, :SORTED

      # @param by [Array<Symbol>] keys of Analyse::Allocations::KEYS that rows are grouped by
      # @param sort [Symbol] the counter of Analyse::Allocations::COUNTERS that rows are sorted by
      # @param retained [Boolean] whether only retained objects are shown
      # @param options [Hash] of ObjectsText
      #: (Analyse::Allocations, Analyse::Summary, by: Array[Symbol], sort: Symbol, ?retained: bool, **untyped) -> void
      def initialize(allocations, summary, by:, sort:, retained: false, **options)
        super(summary, **options)
        @allocations = allocations
        @by = by
        @sort = sort
        @retained = retained
      end

      private

      def header
        notes = [(estimate if @allocations.one_in > 1), (MODEL if gc_known?), *@summary.notes].compact
        wrap(counted.join(" · ")) + losses(@allocations.losses) + notes.flat_map { |text| note("i", text, :dim) }
      end

      def counted
        site = Record::Site
        own = @allocations.special(site::PITWALL)
        ["#{objects(@allocations.objects)} object#{"s" unless @allocations.objects == 1}, " \
         "#{"~" unless @allocations.ends?}#{Units.bytes(@allocations.total(:bytes))}",
         *(retained_words if @allocations.retained?),
         *("#{objects(@allocations.special(site::VM))} more by the VM for itself" if @summary.imports.empty?),
         ("#{Units.count(own)} by Pitwall" if own.positive?),
         *("#{Units.duration(@allocations.gc_ns)} in GC#{own_gc_time}" if gc_known?)].compact
      end

      # Other tools' profiles of objects have no times of collections.
      def gc_known? = @summary.imports.empty? || @allocations.gc_ns.positive?

      # The retained objects and their bytes: "42 retained, 197 KiB".
      def retained_words
        least = "at least " unless @allocations.segments.all?(&:tail)
        bytes = ", #{Units.bytes(@allocations.total(:retained_bytes))}" if @allocations.retained_bytes?
        "#{least}#{Units.count(@allocations.total(:retained))} retained#{bytes}"
      end

      # A number of objects. When objects were followed in bursts, the number of followed objects limits the figures.
      def objects(number, of: @allocations.looked_at)
        @allocations.ends? ? Units.count(number) : Units.about(number, of: of)
      end

      # Pitwall's own part of the GC time: counting retained objects runs the collector.
      def own_gc_time
        ns = @allocations.special(Record::Site::PITWALL, :gc_ns)
        ns.positive? && @allocations.retained? ? " (#{Units.duration(ns)} of it for the count of what is retained)" : ""
      end

      def estimate
        followed = format("one object in %.1f was followed", @allocations.one_in)
        if @allocations.ends?
          return "#{followed}: counts, ages and bytes are estimates, scaled by the number of all objects"
        end

        bursts = @allocations.bursts
        followed += ", in #{bursts ? Units.things(bursts, "burst") : "bursts"}"
        "#{followed}: counts are estimates, scaled by the number of all objects; bytes are those of slots; " \
        "ages and what was retained are not known"
      end

      def body
        rows = @allocations.rows(by: @by, sort: @sort, retained: @retained)
        return [@retained ? "nothing was retained" : "no objects were allocated"] if rows.empty?

        shown = rows.first(@limit)
        lines = table.lines(shown.map { |row| table_row(row) })
        lines = with_stacks(lines, shown) if @by.include?(:stack)
        lines + rest(rows.drop(@limit), rows.size) + stackless + strings + next_steps
      end

      def stackless
        return [] unless @by.include?(:stack) && !@allocations.stacks?

        note("!", "#{GCCostView::STACKLESS}: #{@hints.stacks}", :yellow)
      end

      def strings
        return [] unless @allocations.strings?

        found = @allocations.duplicates
        return ["", "no two strings were equal"] if found.empty?

        table = Table.new(heads: ["strings", "of bytes", "wasted", "equal strings of"],
                          width: @width, palette: @palette, location: @location)
        rows = found.first(@limit).map do |row|
          path, line, = row.places.first
          more = row.places.size > 1 ? " and #{Units.things(row.places.size - 1, "more place")}" : ""
          numbers = [Units.count(row.count), Units.count(row.length), Units.bytes(row.wasted)]
          Table::Row.new(numbers: numbers, name: @location.text(path, line) + more)
        end
        copies = Units.things(found.sum(&:count) - found.size, "string")
        ["", *table.lines(rows),
         @palette.dim("#{Units.bytes(found.sum(&:wasted))} in #{copies} that others are equal to")]
      end

      def table
        names = (retained? ? RETAINED_GIVING_WAY : GIVING_WAY) - [SORTED[@sort]]
        Table.new(heads: [*heads.values, head], width: @width, palette: @palette, location: @location,
                  giving_way: names.map { |name| heads.keys.index(name) })
      end

      # Whether rows are about retained bytes.
      def retained? = (@retained || @sort == :retained_bytes) && @allocations.retained_bytes?

      def heads = retained? ? RETAINED_HEADS : HEADS

      # The rows' part of the program's objects, or of the retained bytes.
      def share(rows)
        counter = retained? ? :retained_bytes : :count
        Units.percent(rows.sum(&counter), @allocations.total(counter))
      end

      def head = names.empty? ? "place" : names.join(" ")

      def names = @by & %i[class type method stack]

      def table_row(row)
        Table::Row.new(numbers: numbers(row), name: name(row), place: place(row), style: (:dim if row.special))
      end

      def numbers(row)
        heads.keys.map do |column|
          case column
          when :objects then row.special ? special(row) : objects(row.count, of: row.followed)
          when :share then row.special ? "" : share([row])
          when :old then @allocations.ends? ? Units.count(row.old) : ""
          when :retained then @allocations.retained? ? Units.count(row.retained) : ""
          when :retained_bytes then Units.bytes(row.retained_bytes)
          when :age then age(row)
          when :bytes then Units.bytes(row.bytes)
          when :gc then Units.duration(row.gc_ns)
          end
        end
      end

      # Objects of a row without a place. Pitwall's own objects are counted exactly, also in bursts.
      def special(row) = row.count == row.followed ? Units.count(row.count) : objects(row.count, of: row.followed)

      # Mean age of the objects, with the range where ages differ. Unit: collections survived.
      def age(row)
        return "" unless row.mean_age
        return format("%d", row.min_age) if row.min_age == row.max_age

        format("%.1f (%d–%d)", row.mean_age, row.min_age, row.max_age)
      end

      def name(row)
        if row.special
          values = row.to_h.values_at(*Analyse::Allocations::KEYS)
          return values.find { |value| value.is_a?(String) && value.start_with?("(") } || row.stack.last
        end

        names.map { |key| key == :stack ? frame(row.stack.last.to_s) : row[key] }.join(" ")
      end

      def place(row)
        return nil if row.special || @by.include?(:stack) # the name then contains the place

        @by.include?(:path) ? [row.path, row.line.to_i] : nil
      end

      # A frame with its path shortened: "Order#total app/order.rb:12".
      def frame(text)
        name, path, line = frame_parts(text)
        name ? "#{name} #{@location.text(path, line.to_i)}" : text
      end

      def frame_parts(text) = text.match(%r{\A(.+?) (/.*|\S+):(\d+)\z}m)&.captures

      def with_stacks(lines, rows)
        lines.each_with_index.flat_map do |line, at|
          row = at.positive? ? rows[at - 1] : nil
          next [line] if row.nil? || row.special

          # The row's line names the innermost frame. When the line cut that name, the frame is repeated below.
          frames = row.stack.reverse
          frames = frames.drop(1) if line.include?(Text.safe(name(row)))
          shown = frames.first(FRAMES).map { |frame| "    #{whole_frame(frame)}" }
          shown << "    … #{frames.size - FRAMES} more" if frames.size > FRAMES
          [line, *shown.map { |text| @palette.dim(text) }]
        end
      end

      # A frame in a line. A long name is shortened in its middle, so that method and place stay readable.
      def whole_frame(text)
        name, path, line = frame_parts(text)
        return Text.shorten(text, @width - 4) unless name

        place = @location.text(path, line.to_i)
        "#{Text.shorten(name, [@width - 5 - Text.width(place), @width / 2].max)} #{place}"
      end

      def rest(rows, all)
        return [] if rows.empty?

        part = share(rows.reject(&:special))
        [@palette.dim("#{part} in #{Units.things(rows.size, "more row")} (#{@hints.rows(all)})")]
      end
    end
  end
end
