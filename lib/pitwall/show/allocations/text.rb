# frozen_string_literal: true

require "pitwall/show/profile/header_view"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Allocations for people: what was counted and how, the table, what to try next.
    class AllocationsText
      TOP = 20
      # Frames of a stack shown below its row.
      FRAMES = 12
      MODEL = "GC charged is a model: each collection's time is divided among the places that allocated since the one before, by objects " \
              "or, where malloc'ed memory caused it, by estimated bytes"
      HEADS = { objects: "objects", share: "", old: "old", retained: "retained", age: "age", bytes: "bytes", gc: "GC charged" }.freeze
      # Where it is asked for: the bytes of what lived at the end come first, and shares are of those.
      RETAINED_HEADS = { retained_bytes: "retained bytes", share: "" }.merge(HEADS.slice(:retained, :objects, :old, :age, :bytes, :gc)).freeze
      # Columns that give way on a narrow terminal, but for what is sorted by; they stand in --format json.
      GIVING_WAY = %i[age old retained gc].freeze
      RETAINED_GIVING_WAY = %i[age old gc objects].freeze
      SORTED = { old: :old, retained: :retained, total_age: :age, max_age: :age, min_age: :age, gc_ns: :gc }.freeze
      private_constant :TOP, :FRAMES, :HEADS, :RETAINED_HEADS, :GIVING_WAY, :RETAINED_GIVING_WAY, :SORTED

      # @param file [String] the recording, for the hints
      # @param by [Array<Symbol>] of Analyse::Allocations::KEYS
      # @param sort [Symbol] of its COUNTERS
      #: (Analyse::Allocations, Analyse::Summary, file: String, by: Array[Symbol], sort: Symbol, **untyped) -> void
      def initialize(allocations, summary, file:, by:, sort:, retained: false, limit: nil, width: 100, palette: Plain, base: nil, warnings: [], findings: [])
        @allocations = allocations
        @summary = summary
        @file = file
        @by = by
        @sort = sort
        @retained = retained
        @limit = limit || TOP
        @width = [width, TextReport::NARROWEST].max
        @palette = palette
        @location = Location.new(base)
        @warnings = warnings
        @findings = findings
      end

      #: () -> String
      def to_s = [*header, *FindingsView.new(width: @width, palette: @palette).lines(@findings), "", *body].join("\n")

      private

      def header
        wrap(HeaderView.of_objects(@summary)).map { |line| @palette.bold(line) } + wrap(counted.join(" · ")) +
          (@warnings + @allocations.losses).flat_map { |text| note("!", text, :yellow) } +
          [*(estimate if @allocations.one_in > 1), MODEL, *@summary.notes].flat_map { |text| note("i", text, :dim) }
      end

      def counted
        site = Record::Site
        ["#{objects(@allocations.objects)} object#{"s" unless @allocations.objects == 1}, #{"~" unless @allocations.ends?}#{Units.bytes(@allocations.total(:bytes))}",
         *(retained_words if @allocations.retained?),
         "#{objects(@allocations.special(site::VM))} more by the VM for itself",
         ("#{Units.count(@allocations.special(site::PITWALL))} by Pitwall" if @allocations.special(site::PITWALL).positive?),
         "#{Units.duration(@allocations.gc_ns)} in GC#{ours}"].compact
      end

      # "42 retained, 197 KiB"
      def retained_words
        least = "at least " unless @allocations.segments.all?(&:tail)
        bytes = ", #{Units.bytes(@allocations.total(:retained_bytes))}" if @allocations.retained_bytes?
        "#{least}#{Units.count(@allocations.total(:retained))} retained#{bytes}"
      end

      # In bursts, no more figures than the objects that were looked at allow.
      def objects(number, of: @allocations.looked_at) = @allocations.ends? ? Units.count(number) : Units.about(number, of: of)

      def ours
        ns = @allocations.special(Record::Site::PITWALL, :gc_ns)
        ns.positive? && @allocations.retained? ? " (#{Units.duration(ns)} of it for the count of what is retained)" : ""
      end

      def estimate
        followed = format("one object in %.1f was followed", @allocations.one_in)
        return "#{followed}: counts, ages and bytes are estimates, scaled by the number of all objects" if @allocations.ends?

        bursts = @allocations.bursts
        followed += ", in #{bursts ? Units.things(bursts, "burst") : "bursts"}"
        "#{followed}: counts are estimates, scaled by the number of all objects; bytes are those of slots; ages and what was retained are not known"
      end

      def body
        rows = @allocations.rows(by: @by, sort: @sort, retained: @retained)
        return [@retained ? "nothing was retained" : "no objects were allocated"] if rows.empty?

        shown = rows.first(@limit)
        lines = table.lines(shown.map { |row| table_row(row) })
        lines = with_stacks(lines, shown) if @by.include?(:stack)
        lines + rest(rows.drop(@limit), rows.size) + stackless + strings + hint
      end

      def stackless
        @by.include?(:stack) && !@allocations.stacks? ? note("!", "#{GCCostView::STACKLESS}: record with --stacks", :yellow) : []
      end

      def strings
        return [] unless @allocations.strings?

        found = @allocations.duplicates
        return ["", "no two strings were equal"] if found.empty?

        table = Table.new(heads: ["strings", "of bytes", "wasted", "equal strings of"], width: @width, palette: @palette, location: @location)
        rows = found.first(@limit).map do |row|
          path, line, = row.places.first
          more = row.places.size > 1 ? " and #{Units.things(row.places.size - 1, "more place")}" : ""
          Table::Row.new(numbers: [Units.count(row.count), Units.count(row.length), Units.bytes(row.wasted)], name: @location.text(path, line) + more)
        end
        ["", *table.lines(rows), @palette.dim("#{Units.bytes(found.sum(&:wasted))} in #{Units.things(found.sum(&:count) - found.size, "string")} that others are equal to")]
      end

      def table
        giving_way = ((retained? ? RETAINED_GIVING_WAY : GIVING_WAY) - [SORTED[@sort]]).map { |name| heads.keys.index(name) }
        Table.new(heads: [*heads.values, head], width: @width, palette: @palette, location: @location, giving_way: giving_way)
      end

      # Rows are of what was retained, by its bytes.
      def retained? = (@retained || @sort == :retained_bytes) && @allocations.retained_bytes?

      def heads = retained? ? RETAINED_HEADS : HEADS

      # Part of the program's objects, or of the bytes retained of them.
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

      # Pitwall's own are counted exactly in bursts as well.
      def special(row) = row.count == row.followed ? Units.count(row.count) : objects(row.count, of: row.followed)

      # The mean, and the range where there is one.
      def age(row)
        return "" unless row.mean_age
        return format("%d", row.min_age) if row.min_age == row.max_age

        format("%.1f (%d–%d)", row.mean_age, row.min_age, row.max_age)
      end

      def name(row)
        return row.to_h.values_at(*Analyse::Allocations::KEYS).find { |value| value.is_a?(String) && value.start_with?("(") } || row.stack.last if row.special
        names.map { |key| key == :stack ? frame(row.stack.last.to_s) : row[key] }.join(" ")
      end

      def place(row)
        return nil if row.special || @by.include?(:stack) # which says it

        @by.include?(:path) ? [row.path, row.line.to_i] : nil
      end

      # "Order#total /app/order.rb:12", the path as everywhere.
      def frame(text)
        name, path, line = frame_parts(text)
        name ? "#{name} #{@location.text(path, line.to_i)}" : text
      end

      def frame_parts(text) = text.match(%r{\A(.+?) (/.*|\S+):(\d+)\z}m)&.captures

      def with_stacks(lines, rows)
        lines.each_with_index.flat_map do |line, at|
          row = at.positive? ? rows[at - 1] : nil
          next [line] if row.nil? || row.special

          # The innermost frame stands in the row; where the numbers left too little room for it, it stands here as well.
          frames = row.stack.reverse
          frames = frames.drop(1) if line.include?(Text.safe(name(row)))
          shown = frames.first(FRAMES).map { |frame| "    #{whole_frame(frame)}" }
          shown << "    … #{frames.size - FRAMES} more" if frames.size > FRAMES
          [line, *shown.map { |text| @palette.dim(text) }]
        end
      end

      # A long name gives way in its middle, so that method and line can be read.
      def whole_frame(text)
        name, path, line = frame_parts(text)
        return Text.shorten(text, @width - 4) unless name

        place = @location.text(path, line.to_i)
        "#{Text.shorten(name, [@width - 5 - Text.width(place), @width / 2].max)} #{place}"
      end

      def rest(rows, all)
        return [] if rows.empty?

        [@palette.dim("#{share(rows.reject(&:special))} in #{Units.things(rows.size, "more row")} (--limit #{all} shows all)")]
      end

      def hint
        lines = ["pitwall report #{@file} --view allocations --sort bytes", "pitwall report #{@file} --view allocations --by class",
                 *("pitwall report #{@file} --view allocations --retained" if @allocations.retained? && !@retained)]
        ["", @palette.dim("Next: #{lines.first}"), *lines.drop(1).map { |line| @palette.dim("      #{line}") }]
      end

      def wrap(text) = Text.wrap(text, @width)

      def note(mark, text, style) = wrap("#{mark} #{text}").map { |line| @palette.public_send(style, line) }
    end
  end
end
