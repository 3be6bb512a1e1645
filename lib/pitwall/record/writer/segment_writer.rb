# frozen_string_literal: true

require "pitwall/record/chunks/collections"
require "pitwall/record/chunks/sites"
require "pitwall/record/chunks/traced_calls"
require "pitwall/record/writer/names"
require "pitwall/record/writer/payload"

module Pitwall
  module Record
    class Writer
      # Writes one segment: names and stacks when they are first used, rows in the order in which they are given.
      # All times are in ns, all figures are integers from 0. An error is Malformed.
      # @api private
      class SegmentWriter
        # Rows that wait, at most, before they are written.
        ROWS = 32_768
        # Ids below are sites that are no place.
        FIRST_SITE = Site::NOBODY + 1
        # Columns of ALLO after the site's id, and of GCEV.
        COUNTERS = Site::COUNTERS.to_h { |name| [name, 0] }.freeze
        COLLECTION = Collection.members.to_h { |name| [name, 0] }.merge(pauses: 1, runs: 1).freeze
        private_constant :FIRST_SITE, :COUNTERS, :COLLECTION

        # @param sink [#<<] receives chunks
        # @param head [Hash{String => Object}] the whole HEAD
        # @param after [Array(Integer, Integer, Integer), nil] the next ids of strings, frames and nodes of a segment
        #   that is continued. Its HEAD is in the file, and its rows have label sets
        #: (untyped, Hash[String, untyped], Budget, ?after: [Integer, Integer, Integer]?) -> void
        def initialize(sink, head, budget, after: nil)
          @sink = sink
          @budget = budget
          @names = Names.new(budget, after: after)
          @continued = !after.nil?
          @new_threads, @new_objects, @sites, @collections, @calls = [], [], [], [], []
          @site_count = @call_count = @row_count = @objects = @collection_count = 0
          @thread_ids = {}
          @unit_ns = head.fetch("unit_ns")
          # Sums for STAT.
          @captures = @cpu = 0
          @walls = Hash.new(0)
          clear_rows
          @sink << Payload.json("HEAD", head) unless @continued
        end

        # What was given so far.
        #: () -> Hash[Symbol, Integer]
        def counts
          { rows: @row_count, calls: @call_count, sites: @site_count, threads: (@thread_ids.keys | @walls.keys).size }
        end

        #: () -> bool
        def closed? = @closed == true

        # Names a thread. Called again, replaces its name.
        # @param id [Integer] the thread's number in this segment
        #: (Integer, String, ?native_id: Integer, ?start_ns: Integer) -> void
        def thread(id, name, native_id: 0, start_ns: 0)
          @budget.take(:threads, 1)
          @thread_ids[id] = true
          @new_threads << [id, native_id, start_ns, @names.string(name)]
        end

        # The id of a stack.
        # @param frames [Array] from the root to the leaf: name, path, first line, line that was running, kind
        #: (Array[[String, String, Integer, Integer, Integer]]) -> Integer
        def stack(frames)
          frames.inject(0) do |parent, (name, path, first_line, line, kind)|
            node(parent, frame(name, path || "", first_line || 0, kind || Frame::RUBY), line || 0)
          end
        end

        # The id of a frame, to build stacks step by step with {node}.
        #: (String, ?String, ?Integer, ?Integer) -> Integer
        def frame(name, path = "", first_line = 0, kind = Frame::RUBY) = @names.frame(name, path, first_line, kind)

        # The id of the stack of `parent` and one more frame. Parent 0 is the empty stack.
        #: (Integer, Integer, ?Integer) -> Integer
        def node(parent, frame, line = 0)
          flush if @names.full?
          @names.node(parent, frame, line)
        end

        # The number of a label set, for {row}.
        #: (Hash[String, String]) -> Integer
        def label_set(labels) = @names.label_set(labels)

        # A shared object that has native frames, so that its functions may get names later. Give each once.
        # @param path [String] of its frames
        # @param build_id [String] in hexadecimal
        # @param names_from [Integer] of doc/record-format.md; 2 exported functions only
        #: (String, String, ?Integer) -> void
        def shared_object(path, build_id, names_from = 0)
          @budget.take(:shared_objects, 1)
          @new_objects << [@names.string(path), @names.string(build_id), names_from]
        end

        # A thread's time at a stack, since its previous row. The rows of a thread are in the order of time.
        # @param captures [Integer] samples that the row consists of
        # @param state [Integer] of doc/record-format.md; 0 running, 2 blocked, 3 unknown
        #: (thread: Integer, node: Integer, ?wall: Integer, ?cpu: Integer, ?captures: Integer, ?state: Integer,
        #:   ?labels: Integer) -> void
        def row(thread:, node:, wall: 0, cpu: 0, captures: 1, state: 0, labels: 0)
          @row_threads << thread
          @row_states << state
          @row_nodes << node
          @row_wall << wall
          @row_cpu << cpu
          @row_captures << captures
          @row_labels << labels
          @row_count += 1
          @walls[thread] += wall
          @cpu += cpu
          @captures += captures
          flush if @row_nodes.size >= ROWS
        end

        # Objects that were allocated at a stack.
        # @param type [Integer] Ruby's number of the type, 0 unknown
        # @param counters count:, bytes: and others of Site::COUNTERS
        #: (node: Integer, ?class_name: String, ?type: Integer, **Integer) -> void
        def site(node:, class_name: "", type: 0, **counters)
          @budget.take(:sites, 1)
          @objects += counters.fetch(:count, 0)
          @sites << [FIRST_SITE + @site_count, node, type, @names.string(class_name),
                     *COUNTERS.merge(counters).fetch_values(*Site::COUNTERS)]
          @site_count += 1
          flush if @sites.size >= ROWS
        end

        # Exact calls of the stack's leaf, without what the leaf called. Give each thread and node once.
        #: (thread: Integer, node: Integer, ?calls: Integer, ?wall: Integer, ?wait: Integer, ?cpu: Integer,
        #:   ?objects: Integer, ?bytes: Integer) -> void
        def call(thread:, node:, calls: 0, wall: 0, wait: 0, cpu: 0, objects: 0, bytes: 0)
          @call_count += 1
          @calls << [thread, node, calls, wall, wait, cpu, 0, objects, bytes]
          flush if @calls.size >= ROWS
        end

        # How calls were counted: keys of TRAC.
        #: (Hash[String, untyped]) -> void
        def trace(details) = @sink << Payload.json("TRAC", details)

        # A run of the garbage collector. The runs are in the order of time.
        # @param fields members of Record::Collection; causes as numbers
        #: (**Integer) -> void
        def collection(**fields)
          row = COLLECTION.merge(fields)
          pause = row[:marking_ns] + row[:sweeping_ns]
          row[:longest_ns] = pause unless fields.key?(:longest_ns)
          row[:span_ns] = pause unless fields.key?(:span_ns)
          @collections << row.values
          flush if @collections.size >= ROWS
        end

        # Ends the segment.
        # @param stats [Hash{String => Object}] keys of STAT; without them, the sums of the rows count
        #: (?Hash[String, untyped]) -> void
        def close(stats = {})
          flush
          @sink << Payload.json("STAT", sums.merge(stats)) << Payload.json("TAIL", { "reason" => "stop" })
          @closed = true
        end

        # Writes all that waits.
        #: () -> void
        def flush
          check_nodes
          @names.chunks.each { |chunk| @sink << chunk }
          table("THRD", @new_threads)
          table("OBJS", @new_objects)
          @new_threads, @new_objects = [], []
          write_rows
          write_sites
          table("GCEV", @collections, ints: [0, @collection_count])
          @collection_count += @collections.size
          table("CALL", @calls)
          @collections, @calls = [], []
        end

        private

        def sums
          { "elapsed_ns" => (@walls.values.max || 0) * @unit_ns, "captures" => @captures,
            "process_cpu_ns" => @cpu * @unit_ns, "threads" => counts[:threads] }
        end

        # A wrong id would make a file that no reader takes.
        def check_nodes
          highest = [@row_nodes.max, @sites.map { |row| row[1] }.max, @calls.map { |row| row[1] }.max].compact.max
          raise ArgumentError, "no node #{highest}" unless highest.nil? || @names.node?(highest)
        end

        def write_rows
          return if @row_nodes.empty?

          payload = Payload.ints([@row_nodes.size]) << Payload.runs(@row_threads) << Payload.runs(@row_states) <<
                    Payload.column(@row_nodes) << Payload.column(@row_wall) << Payload.column(@row_cpu) <<
                    Payload.runs(@row_captures)
          payload << Payload.runs(@row_labels) if @names.labels? || @continued
          @sink << Payload.chunk("SAMP", payload)
          clear_rows
        end

        def clear_rows
          @row_threads, @row_states, @row_nodes, @row_wall, @row_cpu, @row_captures, @row_labels = Array.new(7) { [] }
        end

        def write_sites
          return if @sites.empty?

          columns = @sites.transpose
          @sink << Payload.table("SITE", columns.first(4))
          @sink << Payload.table("ALLO", [columns.first, *columns.drop(4)], ints: [@objects, @objects, 0, 0])
          @sites = []
        end

        def table(type, rows, ints: [])
          @sink << Payload.table(type, rows.transpose, ints: ints) unless rows.empty?
        end
      end
      private_constant :SegmentWriter
    end
  end
end
