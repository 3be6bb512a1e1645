# frozen_string_literal: true

require "pitwall/analyse/recording/only_mine"
require "pitwall/errors"
require "pitwall/record/chunks/sites"

module Pitwall
  module Analyse
    # Where objects were allocated and whether they were retained, over all processes of a recording.
    #
    # If only one object in n was followed, counts and bytes are estimates. They are scaled by the ratio of all objects
    # to followed objects of the process. Charged collection time is not scaled.
    class Allocations
      # Keys that rows can be grouped by.
      KEYS = %i[path line type class method stack].freeze
      # With fewer objects looked at in bursts, places may be missing.
      FEW = 1_000
      # Counters that need objects to be followed until they are freed.
      OF_ENDS = %i[old freed total_age min_age max_age retained retained_bytes].freeze
      # Counters of a row. Ages are in GC runs, bytes as in Record::Site; gc_ns is charged by a model.
      COUNTERS = %i[count old freed total_age min_age max_age slot_bytes bytes retained retained_bytes gc_ns].freeze
      SUMS = (COUNTERS - %i[min_age max_age]).freeze
      # Most frames of a stack that are named.
      DEEPEST = 4096
      # Reasons of {#unknown} in words.
      UNKNOWN = { bursts: "objects were looked at in bursts, and not followed until they were freed",
                  killed: "the process was killed, so retained objects were not counted",
                  old_version: "the recording is of an older version" }.freeze
      private_constant :DEEPEST, :FEW, :OF_ENDS, :UNKNOWN
      # A key that rows are not grouped by is nil.
      # special:  name of a row that is no place in the program, e.g. the VM's objects, else nil
      # stack:    names from the root to the leaf
      # followed: number of objects that were followed
      Row = Struct.new(*KEYS, *COUNTERS, :followed, :special, keyword_init: true) do
        # Mean age in GC runs of the objects freed or retained; nil if there are none.
        #: () -> Float?
        def mean_age = (ended = freed + retained).zero? ? nil : total_age.fdiv(ended)
      end

      # Factor for a site's counts in a process that followed only some objects: all objects divided by followed ones.
      # In bursts, the VM's objects are only sampled too.
      #: (Record::Segment) -> ^(Record::Site) -> Rational
      def self.scale(segment)
        totals = segment.allocation_totals or return ->(_site) { 1r }
        # A filter leaves sites out, and each of the others stands for as many objects as before.
        sites = segment.source.sites
        # In bursts, all objects but Pitwall's own are sampled.
        own = sites.find { |site| site.id == Record::Site::PITWALL }&.count.to_i
        followed = sites.select { |site| scaled_site?(totals, site) }.sum(&:count)
        all = totals.bursts? ? totals.allocated - own : totals.seen
        factor = followed.zero? ? 1r : Rational([all, followed].max, followed)
        ->(site) { site.sampled? || (totals.bursts? && site.id != Record::Site::PITWALL) ? factor : 1r }
      end

      def self.scaled_site?(totals, site) = totals.bursts? ? site.id != Record::Site::PITWALL : site.sampled?
      private_class_method :scaled_site?

      # @return [Array<Record::Segment>] segments that followed objects
      attr_reader :segments

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments.select(&:allocation_totals)
      end

      # Whether any process followed objects.
      #: () -> bool
      def any? = @segments.any?

      # One row for each combination of keys, heaviest first. Special rows come last.
      # @param by [Array<Symbol>] of KEYS
      # @param sort [Symbol] of COUNTERS
      # @param retained [Boolean] only rows with retained objects
      # @raise [UsageError] for an unknown key or counter, or a counter that this recording does not have
      #: (?by: Array[Symbol], ?sort: Symbol, ?retained: bool) -> Array[Row]
      def rows(by: %i[path line class], sort: :count, retained: false)
        check(by, sort, retained)
        rows = {}
        each_site { |segment, site, scale| add(rows, segment, site, scale, by) }
        rows = rows.values
        rows.select! { |row| row.retained.positive? } if retained
        rows.sort_by do |row|
          [row.special ? 1 : 0, -row[sort], -row.count, row.path.to_s, row.line.to_i, row[:class].to_s, row.type.to_s,
           row[:method].to_s]
        end
      end

      # Why rows can't be sorted by a counter or limited to retained objects, nil if they can.
      # :bursts:      objects were not followed until they were freed
      # :killed:      the process was killed before retained objects were counted
      # :old_version: the recording has no bytes of retained objects
      #: (sort: Symbol, ?retained: bool) -> Symbol?
      def unknown(sort:, retained: false)
        return :bursts if !ends? && (retained || OF_ENDS.include?(sort))
        return :killed if !retained? && (retained || %i[retained retained_bytes].include?(sort))

        :old_version if sort == :retained_bytes && !retained_bytes?
      end

      # Strings with equal content.
      # count:  number of strings
      # length: of one string, in bytes
      # bytes:  of all strings, with their slots
      # wasted: bytes of all strings but one
      # places: [path, line, count] each, most strings first
      Duplicates = Struct.new(:count, :length, :bytes, :wasted, :places)

      # Whether strings were compared.
      #: () -> bool
      def strings? = @segments.any?(&:uncompared_strings)

      # Contents that several strings have, most wasted bytes first. Strings of several processes are not compared,
      # because each process hashes contents with its own key.
      #: () -> Array[Duplicates]
      def duplicates
        found = @segments.flat_map do |segment|
          sites = segment.sites.to_h { |site| [site.id, site] }
          groups = segment.equal_strings.select { |row| row.count.positive? }.group_by(&:group)
          groups.values.map { |rows| duplicates_of(segment, sites, rows) }
        end
        found.sort_by { |row| [-row.wasted, -row.count, row.places.first.to_a.join(":")] }
      end

      # Number of objects that the program allocated, without those of the VM and of Pitwall.
      #: () -> Integer
      def objects = total(:count)

      # Sum of a counter over the program's objects.
      # @param counter [Symbol] of SUMS
      #: (Symbol) -> Integer
      def total(counter)
        sum = 0
        each_site { |_, site, scale| sum += scaled(site, counter, scale) if site.program? }
        sum
      end

      # Sum of a counter over a special site.
      # @param id [Integer] e.g. Record::Site::VM
      #: (Integer, ?Symbol) -> Integer
      def special(id, counter = :count)
        sum = 0
        each_site { |_, site, scale| sum += scaled(site, counter, scale) if site.id == id }
        sum
      end

      # Ruby's own count of all objects; nil if a process was killed before its end.
      #: () -> Integer?
      def allocated
        counts = @segments.map { |segment| segment.allocation_totals.allocated }
        counts.sum unless counts.any?(&:zero?)
      end

      # Measured time of garbage collection, in ns.
      #: () -> Integer
      def gc_ns = @segments.sum { |segment| (segment.stats["gc_ns"] || {}).values.grep(Integer).sum }

      # Number of the program's objects for each followed one; 1 if all were followed.
      #: () -> Float
      def one_in
        followed = all = 0
        each_site do |_, site, scale|
          followed += site.count if site.program?
          all += scaled(site, :count, scale) if site.program?
        end
        followed.zero? ? 1.0 : all.fdiv(followed)
      end

      # Whether objects were followed until they were freed. Only then ages, all bytes and retained objects are known.
      #: () -> bool
      def ends? = @segments.none? { |segment| segment.allocation_totals.bursts? }

      # Whether retained objects are known. They are not in bursts, nor if all processes were killed. If some processes
      # were killed, the number is a lower bound.
      #: () -> bool
      def retained? = ends? && (@segments.empty? || @segments.any?(&:tail))

      # Whether bytes of retained objects are known. Recordings of older versions do not have them.
      #: () -> bool
      def retained_bytes? = retained? && @segments.all? { |segment| segment.sites.all?(&:retained_bytes) }

      # Number of bursts; nil if there were none, or if an older version did not count them.
      #: () -> Integer?
      def bursts
        counts = segments_with_bursts.map { |segment| segment.stats["bursts"] }
        counts.sum if counts.any? && counts.all?(Integer)
      end

      # Number of objects looked at in bursts, also the VM's own; nil without bursts.
      #: () -> Integer?
      def looked_at
        return if segments_with_bursts.empty?

        sites = segments_with_bursts.flat_map(&:sites)
        sites.sum { |site| site.id == Record::Site::PITWALL ? 0 : site.count }
      end

      # Path and line of the innermost Ruby code that allocates a site's objects.
      #: (Record::Segment, Record::Site) -> [String, Integer]
      def line(segment, site) = site.special ? [site.special, 0] : place(segment, site, %i[path line]).values

      # Name of the method of this code.
      #: (Record::Segment, Record::Site) -> String
      def method_name(segment, site) = site.special || place(segment, site, [:method])[:method]

      # Whether sites have whole stacks.
      #: () -> bool
      def stacks?
        @segments.any? do |segment|
          segment.sites.any? { |site| !site.node.zero? && !segment.parents[site.node].zero? }
        end
      end

      # Lines that say what is missing from the figures, and why.
      #: () -> Array[String]
      def losses = [*losses_of_places, *losses_of_ractors, *losses_of_ends]

      private

      def segments_with_bursts = @segments.select { |segment| segment.allocation_totals.bursts? }

      def losses_of_places
        losses = []
        looked = looked_at
        if looked&.<(FEW)
          losses << "only #{looked} #{looked == 1 ? "object was" : "objects were"} looked at: places may be missing; " \
                    "pitwall allocations counts all"
        end
        other = special(Record::Site::OTHER)
        if other.positive?
          losses << "#{other} objects came from places beyond the table's limit: they are in (other sites) " \
                    "(without --stacks there are fewer places)"
        end
        untracked = @segments.sum { |segment| segment.allocation_totals.untracked }
        if untracked.positive?
          losses << "the end of #{untracked} objects is unknown: there was no memory to follow them"
        end
        losses
      end

      def losses_of_ractors
        losses = []
        if flag?(Record::AllocationTotals::ENDED)
          losses << "counting ended at the first Ractor, which Ruby 3.1 can't tell of objects in"
        end
        if flag?(Record::AllocationTotals::MISSED)
          losses << "objects of other Ractors than the main one are not counted; an object of the main Ractor that " \
                    "their collections free counts as living until its slot is used again"
        end
        uncounted = @segments.sum { |segment| uncounted(segment) }
        if uncounted.positive?
          losses << "#{uncounted} objects that Ruby counts are in no row: objects of other Ractors, objects " \
                    "allocated while a Ractor ended, and objects that compaction moved"
        end
        losses
      end

      def losses_of_ends
        return [] unless ends? && @segments.any? { |segment| segment.tail.nil? }

        ["what was retained, and its bytes, is unknown where a process was killed: nobody looked at its end"]
      end

      # Errors name keyword arguments as Ruby code writes them.
      def check(by, sort, retained)
        wrong = by - KEYS
        raise UsageError, "by: #{wrong.first.inspect}: it takes #{KEYS.map(&:inspect).join(", ")}" unless wrong.empty?
        unless COUNTERS.include?(sort)
          raise UsageError, "sort: #{sort.inspect}: it takes #{COUNTERS.map(&:inspect).join(", ")}"
        end

        reason = unknown(sort: sort, retained: retained) or return
        argument = retained && reason != :old_version ? "retained: true" : "sort: #{sort.inspect}"
        raise UsageError, "#{argument}: not known: #{UNKNOWN.fetch(reason)}"
      end

      # Number of objects that no row has. Ruby 3.3 and 3.4 drop the hooks when a Ractor is freed, until they are added
      # again. Up to 3.4, an object that compaction moved counts as a new one.
      def uncounted(segment)
        totals = segment.allocation_totals
        return 0 if totals.allocated.zero? || totals.bursts?

        totals.allocated - totals.seen - segment.sites.sum { |site| site.program? ? 0 : site.count }
      end

      def flag?(bit) = @segments.any? { |segment| segment.allocation_totals.flags & bit != 0 }

      def each_site
        @segments.each do |segment|
          scale = Allocations.scale(segment)
          segment.sites.each { |site| yield segment, site, scale.call(site) }
        end
      end

      def duplicates_of(segment, sites, rows)
        count = rows.sum(&:count)
        bytes = rows.sum(&:bytes)
        groups = rows.group_by { |row| string_place(segment, sites[row.site]) }
        places = groups.map { |place, group| [*place, group.sum(&:count)] }
        Duplicates.new(count, rows.first.length, bytes, bytes - (bytes / count),
                       places.sort_by { |path, line, times| [-times, path, line] })
      end

      def string_place(segment, site)
        place = if site && !site.special then place(segment, site, %i[path line])
                else { path: site&.special || "(unknown)", line: 0 }
                end
        place.values_at(:path, :line)
      end

      def scaled(site, counter, scale)
        value = site[counter] || 0
        counter == :gc_ns || scale == 1 ? value : (value * scale).round
      end

      def add(rows, segment, site, scale, by)
        return if site.count.zero? && site.gc_ns.zero?

        place = site.special ? special_place(site, by) : place(segment, site, by)
        row = rows[place] ||= Row.new(**place, special: !site.special.nil?, followed: 0,
                                               **COUNTERS.to_h { |name| [name, 0] })
        add_ages(row, site)
        row.followed += site.count
        SUMS.each { |name| row[name] += scaled(site, name, scale) }
      end

      def add_ages(row, site)
        return if (site.freed + site.retained).zero?

        row.min_age = (row.freed + row.retained).zero? ? site.min_age : [row.min_age, site.min_age].min
        row.max_age = [row.max_age, site.max_age].max
      end

      # The keys of a special site. Its name is the path; if rows are not grouped by path, the name is every key.
      def special_place(site, by)
        by.to_h do |key|
          value = case key
                  when :line then 0
                  when :stack then [site.special]
                  else key == :path || !by.include?(:path) ? site.special : ""
                  end
          [key, value]
        end
      end

      def place(segment, site, by)
        node = code(segment, site.node)
        frame = segment.frame(node) unless node.zero?
        no_code = segment.frame(site.node).name == OnlyMine::OTHER unless site.node.zero?
        unknown = no_code ? OnlyMine::OTHER : "(no Ruby code)"
        by.to_h do |key|
          value = case key
                  when :path then frame&.path || unknown
                  when :line then segment.lines[node]
                  when :type then site.type_name
                  when :class then site.class_name.empty? ? "(hidden)" : site.class_name
                  when :method then frame&.name || unknown
                  when :stack then stack(segment, site.node)
                  end
          [key, value]
        end
      end

      # The innermost node that is Ruby code. Ruby's own methods in Ruby (e.g. Array#map of 4.0 with a JIT) count for
      # their callers, if these were recorded, as in GCCost. One pass from the root, because stacks may be deep.
      def code(segment, node)
        @codes ||= {}.compare_by_identity
        @codes[segment] ||= segment.parents.each_with_index.with_object([]) do |(parent, at), codes|
          codes << (at.zero? || own_code?(segment.frame(at), codes[parent]) ? at : codes[parent])
        end
        @codes[segment][node]
      end

      def own_code?(frame, above)
        frame.kind == Record::Frame::RUBY && (above.zero? || !frame.path.start_with?("<internal:"))
      end

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
