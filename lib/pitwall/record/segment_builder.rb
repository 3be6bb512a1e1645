# frozen_string_literal: true

require "pitwall/record/calls"
require "pitwall/record/collection"
require "pitwall/record/columns"
require "pitwall/record/frame"
require "pitwall/record/header"
require "pitwall/record/limits"
require "pitwall/record/living_point"
require "pitwall/record/malformed"
require "pitwall/record/mark"
require "pitwall/record/query"
require "pitwall/record/rows"
require "pitwall/record/segment"
require "pitwall/record/site"
require "pitwall/record/syscall_rows"
require "pitwall/record/tally"

module Pitwall
  module Record
    # Turns the chunks of one segment into its tables. A chunk is checked whole before anything of it is kept, so that
    # salvage can drop it whole.
    # @api private
    class SegmentBuilder
      LOST_NAME = "(lost name)"
      private_constant :LOST_NAME

      # What all segments of a file may hold together; counts down.
      Budget = Struct.new(:strings, :string_bytes, :frames, :nodes, :threads, :weights, :collections, :sites, :labels, :marks, :queries, :living) do
        #: () -> Budget
        def self.fresh
          new(Limits::STRINGS, Limits::STRING_BYTES, Limits::FRAMES, Limits::NODES, Limits::THREADS, Limits::WEIGHTS, Limits::COLLECTIONS, Limits::SITES,
              Limits::LABELS, Limits::MARKS, Limits::QUERIES, Limits::LIVING)
        end

        # @raise [Malformed] when there is no room for `count` more
        def take(name, count)
          raise Malformed, "goes past the limit for #{name.to_s.tr("_", " ")}" if (self[name] -= count).negative?
        end
      end

      # @return [Boolean] whether a HEAD was read
      def headed? = !@header.nil?

      # @return [Integer] things that rows named and the file no longer has
      attr_reader :lost

      #: (Budget, salvage: bool) -> void
      def initialize(budget, salvage:)
        @budget = budget
        @salvage = salvage
        @lost = 0
        @strings = [""]
        @frames = {}
        @parents = [0]
        @node_frames = [0]
        @lines = [0]
        @threads = {}
        @stats = {}
        @tallies = Hash.new { |labelled, label| labelled[label] = {} }
        @label_sets = [{}]
        @marks = []
        @works = {}
        @work_steps = []
        @worked_until = 0
        @tests = {}
        @queries = {}
        @query_sums = {}
        @query_parts = {}
        @row_offsets = []
        @row_count = 0
        @weights = 0
        @rows_uncounted = 0
        @open_rows = []
        @collections = []
        @collection_level = 0
        @places = {}
        @allocated = {}
        @work = {}
        @allocation_totals = nil
        @calls = Calls.new
        @tracing = {}
        @equal_strings = []
        @living_points = {}
        @syscall_offsets = []
        @syscall_totals = {}
      end

      # Takes one chunk; those of an unknown type are skipped.
      # @raise [Malformed]
      #: (String, Integer, String) -> void
      def chunk(type, offset, payload)
        raise Malformed, "stands before the segment's HEAD" unless headed? || type == "HEAD" || @salvage

        case type
        when "HEAD" then head(payload)
        when "STRS" then strings(Columns.new(payload))
        when "FRAM" then frames(Columns.new(payload))
        when "NODE" then nodes(Columns.new(payload))
        when "THRD" then threads(Columns.new(payload))
        when "LABL" then labels(Columns.new(payload))
        when "SAMP" then samples(offset, payload)
        when "OPEN" then open(Columns.new(payload))
        when "MARK" then marks(Columns.new(payload))
        when "WORK" then works(Columns.new(payload))
        when "TEST" then sums_by_label(Columns.new(payload), Test, @tests)
        when "QURY" then queries(Columns.new(payload))
        when "QSUM" then query_sums(Columns.new(payload))
        when "QREQ" then query_parts(Columns.new(payload))
        when "GCEV" then collections(Columns.new(payload))
        when "SITE" then sites(Columns.new(payload))
        when "ALLO" then allocations(Columns.new(payload))
        when "GCWK" then collecting_work(Columns.new(payload))
        when "CALL" then @calls.read(Columns.new(payload), @budget)
        when "TRAC" then @tracing = Header.parse_object(payload)
        when "LIVE" then living(Columns.new(payload))
        when "BORN" then births(Columns.new(payload))
        when "HOLD" then holders(Columns.new(payload))
        when "DUPS" then equal_strings(Columns.new(payload))
        when "SYSC" then syscalls(offset, payload)
        when "SYST" then syscall_totals(Columns.new(payload))
        when "STAT" then @stats = Header.parse_object(payload)
        when "TAIL" then @tail = Header.parse_object(payload)
        when "ROOM" then @failure = failure(payload)
        end
      end

      # @yield [offset] reads the payload of a SAMP chunk again
      #: () { (Integer) -> String } -> Segment
      def finish(&payload_at)
        @open_rows.each { |thread, state, node, wall, cpu, label| tally(thread, state, label).add(node, wall, cpu, 0) }
        @lost += @calls.settle(@parents.size)
        Segment.new(header: @header || Header.new({}), strings: @strings, frames: @frames, parents: @parents,
                    node_frames: @node_frames, lines: @lines, threads: @threads, stats: @stats.merge(@failure.to_h), tail: @tail,
                    tallies: @tallies.each_value.flat_map(&:values), label_sets: @label_sets,
                    marks: @marks, works: @works.values, work_steps: @work_steps, tests: @tests.values,
                    queries: settled_queries, query_sums: @query_sums.values, query_parts: @query_parts, row_count: @row_count, open_rows: @open_rows, calls: @calls, tracing: @tracing,
                    row_source: row_source(payload_at), collections: @collections, sites: finished_sites,
                    allocation_totals: @allocation_totals, equal_strings: @equal_strings, uncompared_strings: @uncompared_strings,
                    syscall_source: syscall_source(payload_at), syscall_totals: @syscall_totals, syscall_facts: @syscall_facts,
                    living_points: @living_points.values.sort_by(&:number),
                    holders: finished_holders)
      end

      private

      # What stands where room was kept for it, nil where all could be written.
      def failure(payload)
        raise Malformed, "has #{payload.bytesize} bytes and no 12" if payload.bytesize < 12

        error, elapsed_ns = payload.unpack("VQ<")
        { "write_error" => error, "unwritten_until_ns" => elapsed_ns } if error.positive?
      end

      def head(payload)
        raise Malformed, "is a second HEAD in one segment" if headed?

        @header = Header.new(Header.parse_object(payload))
      end

      def strings(columns)
        first = columns.int
        count = columns.int
        lengths = columns.column(count, "lengths")
        bytes = columns.rest
        raise Malformed, "has #{bytes.bytesize} bytes of strings for #{lengths.sum}" unless lengths.sum == bytes.bytesize

        expect_next(first, @strings.size, "string")
        @budget.take(:strings, count + first - @strings.size)
        @budget.take(:string_bytes, bytes.bytesize)
        @strings << LOST_NAME while @strings.size < first
        at = 0
        lengths.each do |length|
          @strings << text(bytes.byteslice(at, length))
          at += length
        end
      end

      # UTF-8 by intent; what is not becomes visible as such.
      def text(bytes)
        bytes.force_encoding(Encoding::UTF_8)
        bytes.valid_encoding? ? bytes : bytes.scrub { |bad| bad.unpack("C*").map { |byte| format("\\x%02X", byte) }.join }
      end

      def frames(columns)
        count = columns.int
        ids = columns.column(count, "id")
        kinds = columns.column(count, "kind")
        names = columns.column(count, "name")
        paths = columns.column(count, "path")
        lines = columns.column(count, "first line")
        check_strings([names.max, paths.max].max) if count.positive?
        @budget.take(:frames, count)
        count.times do |at|
          @frames[ids[at]] = Frame.new(ids[at], string(names[at]), string(paths[at]), lines[at], kinds[at])
        end
      end

      def nodes(columns)
        first = columns.int
        count = columns.int
        distances = columns.column(count, "parent")
        frames = columns.column(count, "frame")
        lines = columns.column(count, "line")
        parents = parents_of(first, distances)
        expect_next(first, @parents.size, "node")
        @budget.take(:nodes, count)
        fill_nodes(first - 1) if first > @parents.size
        @parents.concat(parents)
        @node_frames.concat(frames)
        @lines.concat(lines)
      end

      def parents_of(first, distances)
        raise Malformed, "numbers its nodes from 0" if first.zero?

        id = first
        distances.map do |distance|
          parent = id - distance
          raise Malformed, "has a node whose parent is not before it" if distance.zero? || parent.negative?

          id += 1
          parent
        end
      end

      def threads(columns)
        count = columns.int
        ids = columns.column(count, "id")
        natives = columns.column(count, "native id")
        starts = columns.column(count, "start")
        names = columns.column(count, "name")
        check_strings(names.max) if count.positive?
        @budget.take(:threads, count)
        count.times { |at| @threads[ids[at]] = ThreadInfo.new(ids[at], natives[at], starts[at], string(names[at])) }
      end

      def samples(offset, payload)
        rows = Rows.new(payload)
        return if rows.size.zero?

        check_states(rows)
        rows.label_ids.each { |label| check_label(label) }
        lost = keep_known(rows)
        rows.add_to(@tallies) { |thread, state, label| tally(thread, state, label) }
        count_weights(rows.size)
        @lost += lost
        @row_offsets << [offset, @parents.size]
        @row_count += rows.size
      end

      # A row a label: all of a set stand in one chunk, before the rows that name it.
      def labels(columns)
        count = columns.int
        ids = columns.column(count, "id")
        names = columns.column(count, "name")
        values = columns.column(count, "value")
        return if count.zero?

        raise Malformed, "numbers a label set #{ids.minmax.find { |id| !id.between?(1, Limits::LABELS) }}" unless ids.minmax.all? { |id| id.between?(1, Limits::LABELS) }

        check_strings([names.max, values.max].max)
        @budget.take(:labels, count)
        count.times { |at| (@label_sets[ids[at]] ||= {})[string(names[at])] = string(values[at]) }
      end

      def check_label(label)
        raise Malformed, "names label set #{label}, which it does not have" unless @label_sets[label] || @salvage
      end

      def marks(columns)
        count = columns.int
        values = Mark.members.map { |name| columns.column(count, name.to_s.tr("_", " ")) }
        values[1].uniq.each { |label| check_label(label) }
        @budget.take(:marks, count)
        count.times { |at| @marks << Mark.new(*values.map { |column| column[at] }) }
        @worked_until = [@worked_until, *values[2]].max
      end

      # The marks of a flush stand before its sums.
      def works(columns)
        before = @works.dup
        sums_by_label(columns, Work, @works).uniq.each do |label|
          last, now = before[label], @works[label]
          step = WorkStep.new(label, @worked_until, now.count - last&.count.to_i, now.total_ns - last&.total_ns.to_i)
          @work_steps << step if step.count.positive? && step.total_ns >= 0 && @work_steps.size < Limits::MARKS
        end
      end

      # Cumulative: the last row of a set counts.
      # @return [Array<Integer>] the sets
      def sums_by_label(columns, type, sums)
        count = columns.int
        values = type.members.map { |name| columns.column(count, name.to_s.tr("_", " ")) }
        values[0].uniq.each { |label| check_label(label) }
        count.times do |at|
          @budget.take(:labels, 1) unless sums.key?(values[0][at])
          sums[values[0][at]] = type.new(*values.map { |column| column[at] })
        end
        values[0]
      end

      def queries(columns)
        rows(columns, Query) do |query|
          @budget.take(:queries, 1) unless @queries.key?(query.id)
          @queries[query.id] = query
        end
      end

      # Cumulative: the last row of a label set and query counts.
      def query_sums(columns)
        sums = rows(columns, QuerySum)
        sums.map(&:label_id).uniq.each { |label| check_label(label) }
        sums.each do |sum|
          key = [sum.label_id, sum.query_id]
          @budget.take(:queries, 1) unless @query_sums.key?(key)
          @query_sums[key] = sum
        end
      end

      def query_parts(columns)
        parts = rows(columns, QueryPart)
        @budget.take(:queries, parts.size)
        parts.each { |part| (@query_parts[[part.thread_id, part.end_ns]] ||= []) << part }
      end

      def rows(columns, type, &block)
        count = columns.int
        values = type.members.map { |name| columns.column(count, name.to_s.tr("_", " ")) }
        Array.new(count) { |at| type.new(*values.map { |column| column[at] }) }.each(&block)
      end

      # Their nodes may have been lost.
      def settled_queries
        @queries.each_value do |query|
          next if query.node_id < @parents.size

          @lost += 1
          query.node_id = 0
        end
        @queries
      end

      # Rows may all be of new stacks, or none; counting after every chunk would cost more than the limit protects.
      def count_weights(rows)
        return if (@rows_uncounted += rows) < Limits::WEIGHTS / 8

        @rows_uncounted = 0
        before = @weights
        @weights = @tallies.each_value.sum { |tallies| tallies.each_value.sum(&:size) }
        @budget.take(:weights, @weights - before)
      end

      def check_states(rows)
        raise Malformed, "has a state above #{Limits::STATE}" if rows.highest_state > Limits::STATE
      end

      # A later row of an id replaces the earlier: its class may have got a name. What rows name may follow in later chunks.
      def sites(columns) = rows_by_id(columns, @places, %w[node type class])

      # Cumulative: the last row of an id counts.
      def allocations(columns)
        @allocation_totals = AllocationTotals.new(columns.int, columns.int, columns.int, columns.int)
        rows_by_id(columns, @allocated, Site::COUNTERS, later: 1)
      end

      # As ALLO, of the same ids.
      def collecting_work(columns) = rows_by_id(columns, @work, Site::WORK)

      # @param table [Hash{Integer => Array<Integer, nil>}] what is known by id
      # @param later [Integer] columns at the end that older recordings lack
      def rows_by_id(columns, table, names, later: 0)
        count = columns.int
        ids = columns.column(count, "id")
        rest = names.each_with_index.map { |name, at| columns.column(count, name.to_s) if at < names.size - later || columns.more? }
        count.times do |at|
          @budget.take(:sites, 1) unless table.key?(ids[at])
          table[ids[at]] = rest.map { |values| values && values[at] }
        end
      end

      # Checked here, kept in the file: there may be millions of rows.
      def syscalls(offset, payload)
        rows = SyscallRows.new(payload)
        check_strings(rows.highest_string)
        check_nodes(rows.highest_node)
        @syscall_offsets << offset if rows.size.positive?
      end

      # Cumulative: the last row of a name counts.
      def syscall_totals(columns)
        facts = SyscallFacts.of(columns.int, columns.int, columns.int)
        count = columns.int
        names, calls, errors, ns = %w[name calls errors ns].map { |name| columns.column(count, name) }
        raise Malformed, "has totals of #{count} system calls" if count > Limits::SYSCALLS

        # Their names' strings stand in a later chunk.
        count.times { |at| @syscall_totals[names[at]] = [calls[at], errors[at], ns[at]] }
        raise Malformed, "goes past the limit for names of system calls" if @syscall_totals.size > Limits::SYSCALLS

        @syscall_facts = facts
      end

      def living(columns)
        number, at_ns, rss, flags, count = Array.new(5) { columns.int }
        sites = columns.column(count, "site")
        counts = columns.column(count, "living")
        @budget.take(:living, count + 1)
        @living_points[number] = LivingPoint.new(number, at_ns, rss.zero? ? nil : rss - 1, flags, sites, counts)
      end

      # Of a point that was told before.
      def births(columns)
        number = columns.int
        count = columns.int
        values = Births.members.map { |name| columns.column(count, name.to_s) }
        @budget.take(:living, count)
        point = @living_points[number]
        raise Malformed, "has births of point #{number}, which is not there" unless point || @salvage

        point.births = values.transpose.map { |row| Births.new(*row) } if point
      end

      # Strings of the steps stand in a later chunk.
      def holders(columns)
        flags, looked_at, took_ns, count = Array.new(4) { columns.int }
        values = %w[site path step text].map { |name| columns.column(count, name) }
        @budget.take(:living, count)
        @holders = [flags, looked_at, took_ns, values.transpose]
      end

      def finished_holders
        return if @holders.nil?

        flags, looked_at, took_ns, rows = @holders
        paths = rows.group_by(&:first).transform_values do |steps|
          steps.group_by { |_, path| path }.values.map { |path| path.sort_by { |_, _, step| step }.map { |row| @strings[row[3]] || LOST_NAME } }
        end
        Holders.new(flags, looked_at, took_ns, paths)
      end

      def equal_strings(columns)
        @uncompared_strings = columns.int
        count = columns.int
        values = EqualStrings.members.map { |name| columns.column(count, name.to_s) }
        @budget.take(:sites, count)
        count.times { |at| @equal_strings << EqualStrings.new(*values.map { |column| column[at] }) }
      end

      def finished_sites
        @allocated.map do |id, counters|
          node, type, name = @places[id] || [0, 0, 0]
          @lost += 1 if node >= @parents.size || name >= @strings.size
          Site.new(id, node < @parents.size ? node : 0, type, @strings[name] || LOST_NAME, *counters, *@work[id])
        end
      end

      # Only the last OPEN of a segment counts.
      def open(columns)
        count = columns.int
        threads = columns.column(count, "thread")
        states = columns.column(count, "state")
        nodes = columns.column(count, "node")
        wall = columns.column(count, "wall")
        cpu = columns.column(count, "cpu")
        labels = columns.more? ? columns.column(count, "label") : Array.new(count, 0)
        if count.positive?
          labels.uniq.each { |label| check_label(label) }
          raise Malformed, "has a state above #{Limits::STATE}" if states.max > Limits::STATE
          raise Malformed, "has more threads than the limit" if count > Limits::THREADS

          check_nodes(nodes.max)
          nodes.map! { |node| node < @parents.size ? node : 0 }
        end
        @open_rows = threads.zip(states, nodes, wall, cpu, labels)
      end

      # Neighbours that became one supersede what was written before.
      def collections(columns)
        level = columns.int
        first = columns.int
        count = columns.int
        values = Collection.members.map { |name| columns.column(count, name.to_s.tr("_", " ")) }
        raise Malformed, "merges collections again" if level < @collection_level

        known = level > @collection_level ? [] : @collections
        unless first == known.size || @salvage
          raise Malformed, "continues with collection #{first} where #{known.size} is next"
        end
        @budget.take(:collections, count)
        @collections = known
        @collection_level = level
        values.transpose.each { |row| @collections << collection(row) }
      end

      def collection(row)
        collection = Collection.new(*row)
        collection.cause = cause(Collection::CAUSES, collection.cause)
        collection.major_cause = cause(Collection::MAJOR_CAUSES, collection.major_cause)
        collection.living = nil if collection.living.zero?
        collection
      end

      def cause(names, number) = number == Collection::MIXED ? :mixed : names[number]

      def tally(thread, state, label)
        @tallies[label][thread << 8 | state] ||= begin
          @budget.take(:threads, 1)
          Tally.new(thread, state, @parents.size, label)
        end
      end

      # Ids count up without holes, but for what salvage had to skip.
      def expect_next(first, expected, noun)
        return if first == expected || @salvage && first.between?(expected, expected + Limits::GAP)

        raise Malformed, "continues with #{noun} #{first} where #{expected} is next"
      end

      def check_strings(highest)
        return if highest < @strings.size || @salvage

        raise Malformed, "names string #{highest} of #{@strings.size}"
      end

      def string(id)
        return @strings[id] if id < @strings.size

        @lost += 1
        LOST_NAME
      end

      # Nodes are written before the rows that name them.
      def check_nodes(highest)
        raise Malformed, "names node #{highest} of #{@parents.size}" unless highest < @parents.size || @salvage
      end

      # How many rows had to be put at the root, because salvage lost their stacks.
      def keep_known(rows)
        check_nodes(rows.nodes.max)
        rows.root_unknown(@parents.size)
      end

      # Stacks that salvage lost: they hang from the root, unresolved.
      def fill_nodes(last)
        count = last + 1 - @parents.size
        @budget.take(:nodes, count)
        @lost += count
        lost = -1
        @frames[lost] ||= Frame.new(lost, "(lost stack)", "", 0, Frame::PITWALL)
        @parents.concat(Array.new(count, 0))
        @node_frames.concat(Array.new(count, lost))
        @lines.concat(Array.new(count, 0))
      end

      def syscall_source(payload_at)
        offsets = @syscall_offsets
        return if offsets.empty?

        ->(segment, &block) { offsets.each { |offset| SyscallRows.new(payload_at.call(offset)).each(segment, &block) } }
      end

      def row_source(payload_at)
        offsets = @row_offsets
        lambda do |&block|
          offsets.each { |offset, known| block.call(Rows.new(payload_at.call(offset)).tap { |rows| rows.root_unknown(known) }) }
        end
      end
    end
    private_constant :SegmentBuilder
  end
end
