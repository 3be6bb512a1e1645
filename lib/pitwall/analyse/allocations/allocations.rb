# frozen_string_literal: true

require "pitwall/analyse/recording/only_mine"
require "pitwall/errors"
require "pitwall/record/chunks/sites"

module Pitwall
  module Analyse
    # Where objects were allocated and what became of them, over all processes of a recording.
    #
    # Where only one in so many objects was followed, counts and bytes are estimates: each process's are scaled once, by
    # all of its objects over those followed. What is charged of garbage collection needs no scaling.
    class Allocations
      # What rows may be put together by.
      KEYS = %i[path line type class method stack].freeze
      # Objects that must have been looked at in bursts before places can be relied on.
      FEW = 1_000
      # Counters that are of objects' ends.
      OF_ENDS = %i[old freed total_age min_age max_age retained retained_bytes].freeze
      # What they hold besides; ages in collections, bytes as Record::Site has them, gc_ns a model's figure.
      COUNTERS = %i[count old freed total_age min_age max_age slot_bytes bytes retained retained_bytes gc_ns].freeze
      SUMS = (COUNTERS - %i[min_age max_age]).freeze
      # Frames of a stack that are named.
      DEEPEST = 4096
      private_constant :DEEPEST, :FEW, :OF_ENDS
      # A key that was not asked for is nil. special: the row stands for no place in the program. stack: names from the root.
      # followed: objects that were really looked at.
      Row = Struct.new(*KEYS, *COUNTERS, :followed, :special, keyword_init: true) do
        # In collections, of the objects freed or retained; nil when there are none.
        #: () -> Float?
        def mean_age = (ended = freed + retained).zero? ? nil : total_age.fdiv(ended)
      end

      # By how much a process's counts are to be multiplied where objects were sampled: by all over those followed. In bursts
      # the VM's and Pitwall's were sampled as well.
      #: (Record::Segment) -> ^(Record::Site) -> Rational
      def self.scale(segment)
        totals = segment.allocation_totals or return ->(_site) { 1r }
        # In bursts all are sampled but Pitwall's own.
        own = segment.sites.find { |site| site.id == Record::Site::PITWALL }&.count.to_i
        sampled = segment.sites.select { |site| totals.bursts? ? site.id != Record::Site::PITWALL : site.sampled? }.sum(&:count)
        all = totals.bursts? ? totals.allocated - own : totals.seen
        factor = sampled.zero? ? 1r : Rational([all, sampled].max, sampled)
        ->(site) { site.sampled? || (totals.bursts? && site.id != Record::Site::PITWALL) ? factor : 1r }
      end

      # @return [Array<Record::Segment>] those that followed objects
      attr_reader :segments

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments.select(&:allocation_totals)
      end

      # Did any process follow objects?
      #: () -> bool
      def any? = @segments.any?

      # One row for each combination of keys, heaviest first; rows that stand for no place come last.
      # @param by [Array<Symbol>] of KEYS
      # @param sort [Symbol] of COUNTERS
      # @param retained [Boolean] only what lived at the end
      # @raise [UsageError] for another key or counter, or one that is not known of this recording
      #: (?by: Array[Symbol], ?sort: Symbol, ?retained: bool) -> Array[Row]
      def rows(by: %i[path line class], sort: :count, retained: false)
        check(by, sort)
        check_known(sort, retained)
        rows = {}
        each_site { |segment, site, scale| add(rows, segment, site, scale, by) }
        rows = rows.values
        rows.select! { |row| row.retained.positive? } if retained
        rows.sort_by { |row| [row.special ? 1 : 0, -row[sort], -row.count, row.path.to_s, row.line.to_i, row[:class].to_s, row.type.to_s, row[:method].to_s] }
      end

      # Strings of equal content. count: how many there were; length of one in bytes; bytes of all, with their slots;
      # wasted: what all but one of them took; places: [path, line, count] each, most first.
      Duplicates = Struct.new(:count, :length, :bytes, :wasted, :places)

      # Were strings compared?
      #: () -> bool
      def strings? = @segments.any?(&:uncompared_strings)

      # Contents that there were several of, those that waste most first. Those of several processes are not put together: each has its
      # own key.
      #: () -> Array[Duplicates]
      def duplicates
        found = @segments.flat_map do |segment|
          sites = segment.sites.to_h { |site| [site.id, site] }
          segment.equal_strings.select { |row| row.count.positive? }.group_by(&:group).values.map { |rows| duplicates_of(segment, sites, rows) }
        end
        found.sort_by { |row| [-row.wasted, -row.count, row.places.first.to_a.join(":")] }
      end

      # Objects that the program allocated: without those of the VM and of Pitwall.
      #: () -> Integer
      def objects = total(:count)

      # Of the program's objects.
      # @param counter [Symbol] of SUMS
      #: (Symbol) -> Integer
      def total(counter)
        sum = 0
        each_site { |_, site, scale| sum += scaled(site, counter, scale) if site.program? }
        sum
      end

      # What a row that stands for no place holds.
      # @param id [Integer] Record::Site::VM and the like
      #: (Integer, ?Symbol) -> Integer
      def special(id, counter = :count)
        sum = 0
        each_site { |_, site, scale| sum += scaled(site, counter, scale) if site.id == id }
        sum
      end

      # Ruby's own count of all objects, nil when a process did not live to tell.
      #: () -> Integer?
      def allocated
        counts = @segments.map { |segment| segment.allocation_totals.allocated }
        counts.sum unless counts.any?(&:zero?)
      end

      # Garbage collection that was measured, in ns.
      #: () -> Integer
      def gc_ns = @segments.sum { |segment| (segment.stats["gc_ns"] || {}).values.grep(Integer).sum }

      # One object of so many was followed; 1 when all were.
      #: () -> Float
      def one_in
        followed = all = 0
        each_site do |_, site, scale|
          followed += site.count if site.program?
          all += scaled(site, :count, scale) if site.program?
        end
        followed.zero? ? 1.0 : all.fdiv(followed)
      end

      # Were ends of objects seen, and so their ages, all their bytes and what was retained?
      #: () -> bool
      def ends? = @segments.none? { |segment| segment.allocation_totals.bursts? }

      # Is it known what was retained? Not in bursts, nor where no process lived to its end. Where some did, it is a lower bound.
      #: () -> bool
      def retained? = ends? && (@segments.empty? || @segments.any?(&:tail))

      # And the bytes of that? Recordings of older versions don't tell.
      #: () -> bool
      def retained_bytes? = retained? && @segments.all? { |segment| segment.sites.all?(&:retained_bytes) }

      # How many bursts there were; nil where there were none, or the recording is of a time when they were not counted.
      #: () -> Integer?
      def bursts
        counts = @segments.select { |segment| segment.allocation_totals.bursts? }.map { |segment| segment.stats["bursts"] }
        counts.sum if counts.any? && counts.all?(Integer)
      end

      # Objects that were really looked at in bursts, the VM's own among them; nil where there were none.
      #: () -> Integer?
      def looked_at
        bursts = @segments.select { |segment| segment.allocation_totals.bursts? }
        bursts.sum { |segment| segment.sites.sum { |site| site.id == Record::Site::PITWALL ? 0 : site.count } } if bursts.any?
      end

      # Path and line of the innermost code written in Ruby that allocates a site's objects.
      #: (Record::Segment, Record::Site) -> [String, Integer]
      def line(segment, site) = site.special ? [site.special, 0] : place(segment, site, %i[path line]).values

      # The name of that code.
      #: (Record::Segment, Record::Site) -> String
      def method_name(segment, site) = site.special || place(segment, site, [:method])[:method]

      # Were whole stacks recorded?
      #: () -> bool
      def stacks? = @segments.any? { |segment| segment.sites.any? { |site| !site.node.zero? && !segment.parents[site.node].zero? } }

      # What makes the figures less than whole, in words.
      #: () -> Array[String]
      def losses
        losses = []
        looked = looked_at
        losses << "only #{looked} #{looked == 1 ? "object was" : "objects were"} looked at: places may be missing; pitwall allocations counts all" if looked&.<(FEW)
        other = special(Record::Site::OTHER)
        losses << "#{other} objects came from further places than the table holds: they are in (other sites) (without --stacks there are fewer)" if other.positive?
        untracked = @segments.sum { |segment| segment.allocation_totals.untracked }
        losses << "the end of #{untracked} objects is unknown: there was no memory to follow them" if untracked.positive?
        losses << "counting ended at the first Ractor, which Ruby 3.1 can't tell of objects in" if cut?(Record::AllocationTotals::ENDED)
        losses << "objects of other Ractors than the main one are not counted, nor what their collections freed of its own, until its place was taken" if cut?(Record::AllocationTotals::MISSED)
        untold = @segments.sum { |segment| untold(segment) }
        losses << "#{untold} objects that Ruby counts are in no row: other Ractors', what it leaves out for a moment when a Ractor ends, and what compaction moved" if untold.positive?
        killed = @segments.count { |segment| segment.tail.nil? }
        losses << "what was retained, and its bytes, is unknown where a process was killed: nobody looked at its end" if killed.positive? && ends?
        losses
      end

      private

      def check(by, sort)
        wrong = by - KEYS
        raise UsageError, "--by #{wrong.first}: it takes #{KEYS.join(", ")}" unless wrong.empty?
        raise UsageError, "--sort #{sort}: it takes #{COUNTERS.join(", ")}" unless COUNTERS.include?(sort)
      end

      def check_known(sort, retained)
        asked = retained ? "--retained" : "--sort #{sort}"
        raise UsageError, "#{asked}: not known in bursts; pitwall allocations -- CMD follows objects to their end" if !ends? && (retained || OF_ENDS.include?(sort))
        raise UsageError, "#{asked}: not known: the process was killed, and nobody looked at its end" if !retained? && (retained || %i[retained retained_bytes].include?(sort))
        raise UsageError, "--sort #{sort}: not known: the recording is of an older version; --sort retained counts the objects" if sort == :retained_bytes && !retained_bytes?
      end

      # Ruby 3.3 and 3.4 forget who listens when a Ractor is freed, until somebody listens anew; to 3.4 a moved object is a new one.
      def untold(segment)
        totals = segment.allocation_totals
        return 0 if totals.allocated.zero? || totals.bursts?

        totals.allocated - totals.seen - segment.sites.sum { |site| site.program? ? 0 : site.count }
      end

      def cut?(bit) = @segments.any? { |segment| segment.allocation_totals.flags & bit != 0 }

      def each_site
        @segments.each do |segment|
          scale = Allocations.scale(segment)
          segment.sites.each { |site| yield segment, site, scale.call(site) }
        end
      end

      def duplicates_of(segment, sites, rows)
        count = rows.sum(&:count)
        bytes = rows.sum(&:bytes)
        places = rows.group_by { |row| string_place(segment, sites[row.site]) }.map { |place, same| [*place, same.sum(&:count)] }
        Duplicates.new(count, rows.first.length, bytes, bytes - (bytes / count), places.sort_by { |path, line, times| [-times, path, line] })
      end

      def string_place(segment, site)
        place = site && !site.special ? place(segment, site, %i[path line]) : { path: site&.special || "(unknown)", line: 0 }
        place.values_at(:path, :line)
      end

      def scaled(site, counter, scale)
        value = site[counter] || 0
        counter == :gc_ns || scale == 1 ? value : (value * scale).round
      end

      def add(rows, segment, site, scale, by)
        return if site.count.zero? && site.gc_ns.zero?

        place = site.special ? special_place(site, by) : place(segment, site, by)
        row = rows[place] ||= Row.new(**place, special: !site.special.nil?, followed: 0, **COUNTERS.to_h { |name| [name, 0] })
        add_ages(row, site)
        row.followed += site.count
        SUMS.each { |name| row[name] += scaled(site, name, scale) }
      end

      def add_ages(row, site)
        return if (site.freed + site.retained).zero?

        row.min_age = (row.freed + row.retained).zero? ? site.min_age : [row.min_age, site.min_age].min
        row.max_age = [row.max_age, site.max_age].max
      end

      # Its name stands where people look for a place.
      def special_place(site, by)
        by.to_h { |key| [key, key == :line ? 0 : key == :stack ? [site.special] : key == :path || !by.include?(:path) ? site.special : ""] }
      end

      def place(segment, site, by)
        node = code(segment, site.node)
        frame = segment.frame(node) unless node.zero?
        nobody = !site.node.zero? && segment.frame(site.node).name == OnlyMine::OTHER ? OnlyMine::OTHER : "(no Ruby code)"
        by.to_h do |key|
          value = case key
                  when :path then frame&.path || nobody
                  when :line then segment.lines[node]
                  when :type then site.type_name
                  when :class then site.class_name.empty? ? "(hidden)" : site.class_name
                  when :method then frame&.name || nobody
                  when :stack then stack(segment, site.node)
                  end
          [key, value]
        end
      end

      # The innermost node that is code written in Ruby. Ruby's own methods written in Ruby (Array#map of 4.0 with a JIT) count for
      # their callers where these were recorded, as GCCost has it. One pass from the root, as chains may be long.
      def code(segment, node)
        codes = (@codes ||= {}.compare_by_identity)[segment] ||= segment.parents.each_with_index.with_object([]) do |(parent, at), found|
          found << (at.zero? || own_code?(segment.frame(at), found[parent]) ? at : found[parent])
        end
        codes[node]
      end

      def own_code?(frame, above) = frame.kind == Record::Frame::RUBY && (above.zero? || !frame.path.start_with?("<internal:"))

      def stack(segment, node)
        names = []
        until node.zero? || names.size == DEEPEST
          frame = segment.frame(node)
          line = segment.lines[node]
          names << (line.zero? ? frame.name : "#{frame.name} #{frame.path}:#{line}")
          node = segment.parents[node]
        end
        names.reverse
      end
    end
  end
end
