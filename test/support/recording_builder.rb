# frozen_string_literal: true

require "json"
require "zlib"
require_relative "lz4_encoder"

# Writes the `.pit` format from stacks, straight from doc/record-format.md: slow, obvious, and independent of the C writer.
#
#   RecordingBuilder.build(pid: 7) do |segment|
#     segment.thread 1, "main"
#     segment.row thread: 1, stack: [["Object#main", "/app/a.rb", 1, 3], ["Shop#sum", "/app/shop.rb", 10, 12]], wall: 5, cpu: 4
#   end
#
# A stack is a list from the root to the leaf of [name, path, first line, line running] or [..., kind].
class RecordingBuilder
  MAGIC = "PITWALL 1\n".b

  HEAD = {
    "schema" => "pitwall/record-1", "collector" => "sampler", "mode" => "signal", "interval_ns" => 1_000_000, "unit_ns" => 1000,
    "started_at_ns" => 1_790_000_000_000_000_000, "clock" => "monotonic", "pid" => 4242, "ppid" => 4241, "program" => "shop.rb",
    "argv_options" => ["--port"],
    "ruby" => { "version" => "3.4.1", "engine" => "ruby", "patchlevel" => 0, "platform" => "x86_64-linux",
                "description" => "ruby 3.4.1 (2024-12-25) +PRISM [x86_64-linux]", "jit" => nil },
    "host" => { "kernel" => "6.1", "cpu" => "Example CPU", "cores" => 2, "memory_bytes" => 8 << 30 },
    "settings" => { "interval_ns" => 1_000_000 }, "thread_states" => true, "notes" => []
  }.freeze

  # The bytes of a recording with one segment.
  def self.build(compress: false, stop: true, **head, &block)
    new.tap { |builder| builder.segment(compress: compress, stop: stop, **head, &block) }.bytes
  end

  def self.chunk(type, payload, compress: false, flags: nil)
    payload = payload.b
    stored = compress ? LZ4Encoder.encode(payload) : payload
    [type, flags || (compress ? 1 : 0), "\0\0\0", stored.bytesize, payload.bytesize, Zlib.crc32(stored)].pack("a4Ca3V3") + stored
  end

  def self.column(values)
    bytes = values.pack("w*")
    [bytes.bytesize].pack("w") + bytes
  end

  def self.runs(values)
    column(values.chunk_while { |a, b| a == b }.flat_map { |run| [run.first, run.size] })
  end

  def initialize
    @bytes = "".b
  end

  attr_reader :bytes

  def segment(compress: false, stop: true, **head)
    segment = SegmentWriter.new(HEAD.merge(head.transform_keys(&:to_s)), compress)
    yield segment
    segment.flush
    segment.stat
    segment.stop if stop
    @bytes << segment.bytes
    self
  end

  # One process.
  class SegmentWriter
    attr_reader :bytes, :stats

    def initialize(head, compress)
      @compress = compress
      @bytes = MAGIC.dup
      @stats = { "elapsed_ns" => 2_000_000_000, "ticks" => 2000, "captures" => 1990, "missed_ticks" => 3, "dropped" => 1,
                 "handler_ns" => 4_000_000, "own_cpu_ns" => 6_000_000, "process_cpu_ns" => 1_500_000_000, "threads" => 1 }
      @strings = { "" => 0 }
      @new_strings = []
      @frames = {}
      @new_frames = []
      @nodes = {}
      @new_nodes = []
      @threads = []
      @rows = []
      @open = []
      @collections = []
      @collections_before = @level = 0
      @calls = []
      @sites = []
      @allocated = []
      @work = []
      @equal = []
      @label_sets = { {} => 0 }
      @labels = []
      @marks = []
      @works = []
      @tests = []
      @queries = {}
      @new_queries = []
      @query_sums = []
      @query_parts = []
      @counted = []
      @mark_counters = []
      @objects = []
      @syscalls = []
      @changes = []
      @totals = {}
      chunk("HEAD", JSON.generate(head))
    end

    def thread(id, name, native_id: id + 100, start_ns: 0)
      @threads << [id, native_id, start_ns, string(name)]
    end

    def row(stack:, thread: 1, state: 0, wall: 1, cpu: 1, captures: 1, labels: {})
      @rows << [thread, state, node(stack), wall, cpu, captures, label_set(labels)]
    end

    def open(stack:, thread: 1, state: 0, wall: 0, cpu: 0, labels: {})
      @open << [thread, state, node(stack), wall, cpu, label_set(labels)]
    end

    # Work that ended: thread, ns since the segment's start, ns.
    def mark(labels, thread: 1, end_ns: 0, ns: 0) = @marks << [thread, label_set(labels), end_ns, ns]
    def work(labels, count:, ns:) = @works << [label_set(labels), count, ns]
    # Runs of a test; counted: those whose objects and collection are known.
    def test(labels, count: 1, ns: 0, cpu: 0, counted: count, objects: 0, gc: 0) = @tests << [label_set(labels), count, ns, cpu, counted, objects, gc]

    # A query that `works` pieces of work asked `count` times. place: [name, path, first line, line] or nothing; kind: 0 asked, 1 cached, 2 schema.
    def queries(labels = {}, digest: 1, place: nil, kind: 0, works: 0, count: 1, ns: 0, most: works.zero? ? 0 : count)
      @query_sums << [label_set(labels), query(digest, place, kind), works, count, ns, most]
    end

    # Increase of a counter of the VM's caches in `count` pieces of work, and in the mark of that thread and end.
    def counted(labels, name, increase, count: 1) = @counted << [label_set(labels), string(name), count, increase]
    def counter_of(end_ns, name, increase, thread: 1) = @mark_counters << [thread, end_ns, string(name), increase]

    # What the mark of that thread and end asked.
    def queries_of(end_ns, thread: 1, digest: 1, place: nil, kind: 0, count: 1, ns: 0)
      @query_parts << [thread, end_ns, query(digest, place, kind), count, ns]
    end

    def query(digest, place, kind)
      @queries[[digest, place, kind]] ||= begin
        @new_queries << [@queries.size + 1, place ? node([place]) : 0, digest, kind]
        @queries.size + 1
      end
    end

    def label_set(labels)
      @label_sets[labels] ||= begin
        labels.each { |name, value| @labels << [@label_sets.size, string(name), string(value)] }
        @label_sets.size
      end
    end

    # Cumulative: the last row of a thread and stack counts.
    def calls(stack:, thread: 1, calls: 1, wall: 0, wait: 0, cpu: 0, probe: 0, objects: 0, bytes: 0)
      @calls << [thread, node(stack), calls, wall, wait, cpu, probe, objects, bytes]
    end

    def traced(details = { "clock" => "tsc", "cpu" => true, "objects" => true, "bytes" => true, "lost_calls" => 0, "probe_ns" => { "ruby" => [10.5, 20.0, 1.0] } })
      chunk("TRAC", JSON.generate(details))
    end
    # @param counters those of Record::Site after the class, in their order; recordings of older versions end with gc_ns
    # @param work those of Record::Site::WORK, in their order
    def site(id, stack: [], type: 5, class_name: "String", counters: [1] + [0] * 9, work: nil)
      @sites << [id, node(stack), type, string(class_name)]
      @allocated << [id, *counters]
      @work << [id, *work] if work
    end

    # What lived at a point; rss nil: not known. births: [site, point, count, bytes] each, nil: not told.
    def living(number, at_ns:, sites:, rss: nil, flags: 0, births: nil)
      rows = sites.to_a
      chunk("LIVE", ints(number, at_ns, rss ? rss + 1 : 0, flags, rows.size) + RecordingBuilder.column(rows.map(&:first)) + RecordingBuilder.column(rows.map(&:last)))
      return if births.nil?

      chunk("BORN", ints(number, births.size) + Array.new(4) { |at| RecordingBuilder.column(births.map { |row| row[at] }) }.join)
    end

    # Steps of reference paths: [site, path, text] each, in their order.
    def holders(steps, flags: 0)
      rows = steps.each_with_index.map { |(site, path, text), at| [site, path, at, string(text)] }
      chunk("HOLD", ints(flags, 100, 1_000_000, rows.size) + Array.new(4) { |at| RecordingBuilder.column(rows.map { |row| row[at] }) }.join)
    end

    # Of all objects together, where they are not the sum of the sites: allocated, seen, flags as in Record::AllocationTotals.
    def allocation_totals(**totals) = @totals = totals

    def equal_strings(*row) = @equal << row

    # In the order of their ends.
    def syscall(name, path: nil, path2: nil, at: 0, ns: 0, result: 0, errno: 0, flags: nil, stack: [], thread: 1, cwd: nil)
      strings = [path, path2, cwd].map { |text| text ? string(text) : 0 }
      @syscalls << [thread, string(name), at, ns, result, errno, flags ? flags + 1 : 0, node(stack), *strings]
    end

    # @param totals [Hash{String => Array(Integer, Integer, Integer)}] calls, errors, ns
    def syscall_totals(totals, flags: 0, lost: 0, refused: 0)
      table("SYST", totals.map { |name, counts| [string(name), *counts] }, 4, ints(flags, lost, refused))
    end

    # A change that empties caches. counters: constants, classes, class_variables, shapes; misses: nil in old recordings, which lack label sets, too
    def change(kind, subject, stack:, at: 0, thread: 1, begun: 0, ended: 0, misses: 0, **counters)
      increase = %i[constants classes class_variables shapes].map { |name| counters.fetch(name, 0) }
      @changes << [thread, at, string(kind), node(stack), string(subject), begun, ended, *increase, *(misses && [0, misses])]
    end

    # counters: {"class_serial" => [from, to, own]}
    def cache_sums(counters, **facts)
      chunk("CHSM", JSON.generate("counters" => counters, "watched" => "lines", "begun" => 0, "ended" => 0, "lost" => 0, **facts.transform_keys(&:to_s)))
    end

    def node(stack)
      stack.inject(0) do |parent, (name, path, first_line, line, kind)|
        frame = frame(name, path || "", first_line || 0, kind || 0)
        @nodes[[parent, frame, line || 0]] ||= begin
          id = @nodes.size + 1
          @new_nodes << [id - parent, frame, line || 0]
          id
        end
      end
    end

    def frame(name, path, first_line, kind)
      @frames[[name, path, first_line, kind]] ||= begin
        id = @frames.size + 1
        @new_frames << [id, kind, string(name), string(path), first_line]
        id
      end
    end

    # A shared object with native frames. names_from: a number of doc/record-format.md.
    def shared_object(path, build_id, names_from: 0) = @objects << [string(path), string(build_id), names_from]

    def string(text)
      text = text.b
      @strings[text] ||= begin
        @new_strings << text
        @strings.size
      end
    end

    # A garbage collection run, in ns.
    def collection(start: 0, span: nil, marking: 0, sweeping: 0, pauses: 1, longest: nil, longest_at: 0, thread: 1, runs: 1, majors: 0,
                   immediate: 0, cause: 1, major_cause: 0, allocated: 0, living: 0)
      longest ||= marking + sweeping
      @collections << [start, span || marking + sweeping, marking, sweeping, pauses, longest, longest_at, thread, runs, majors, immediate,
                                cause, major_cause, allocated, living]
    end

    # From here on, neighbours are merged: what came before is superseded.
    def merge_collections(level)
      @level = level
      @collections_before = 0
    end

    # Names before frames before stacks before rows, as the collector writes them.
    def flush
      unless @new_strings.empty?
        chunk("STRS", ints(@strings.size - @new_strings.size, @new_strings.size) + RecordingBuilder.column(@new_strings.map(&:bytesize)) + @new_strings.join)
      end
      table("FRAM", @new_frames, 5)
      table("OBJS", @objects, 3)
      table("NODE", @new_nodes, 3, ints(@nodes.size + 1 - @new_nodes.size))
      table("THRD", @threads, 4)
      table("LABL", @labels, 3)
      unless @rows.empty?
        thread, state, node, wall, cpu, captures, label = @rows.transpose
        chunk("SAMP", ints(@rows.size) + RecordingBuilder.runs(thread) + RecordingBuilder.runs(state) + RecordingBuilder.column(node) +
                      RecordingBuilder.column(wall) + RecordingBuilder.column(cpu) + RecordingBuilder.runs(captures) + (labelled? ? RecordingBuilder.runs(label) : ""))
      end
      table("SYSC", @syscalls, 11, ints(0))
      table("CHNG", @changes, @changes.first.to_a.size)
      table("OPEN", @open, labelled? ? 6 : 5)
      table("MARK", @marks, 4)
      table("WORK", @works, 3)
      table("TEST", @tests, 7)
      table("QURY", @new_queries, 4)
      table("QSUM", @query_sums, 6)
      table("QREQ", @query_parts, 5)
      table("CWRK", @counted, 4)
      table("CMRK", @mark_counters, 4)
      table("GCEV", @collections, 15, ints(@level, @collections_before))
      @collections_before += @collections.size
      table("CALL", @calls, 9)
      table("SITE", @sites, 4)
      seen = @allocated.sum { |row| [1, 2, 4].include?(row[0]) ? 0 : row[1] }
      table("ALLO", @allocated, @allocated.map(&:size).min || 0, ints(@totals.fetch(:allocated) { @allocated.sum { |row| row[1] } }, @totals.fetch(:seen, seen), 0, @totals.fetch(:flags, 0)))
      table("GCWK", @work, 6)
      table("DUPS", @equal, 5, ints(0))
      [@collections, @calls, @new_strings, @new_frames, @new_nodes, @threads, @rows, @open, @sites, @allocated, @work, @equal, @labels, @marks, @works, @tests, @new_queries, @query_sums, @query_parts, @objects, @syscalls, @changes].each(&:clear)
    end

    def stat = chunk("STAT", JSON.generate(@stats))
    def stop = chunk("TAIL", JSON.generate("reason" => "stop"))
    def chunk(type, payload) = @bytes << RecordingBuilder.chunk(type, payload, compress: @compress)

    private

    # Recordings without labels have no such columns.
    def labelled? = @label_sets.size > 1

    def table(type, rows, width, prefix = "".b)
      return if rows.empty?

      chunk(type, prefix + ints(rows.size) + Array.new(width) { |at| RecordingBuilder.column(rows.map { |row| row[at] }) }.join)
    end

    def ints(*values) = values.pack("w*")
  end
end
