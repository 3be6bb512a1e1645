# frozen_string_literal: true

require "pitwall/record/calls"
require "pitwall/record/frame"
require "pitwall/record/mark"
require "pitwall/record/query"

module Pitwall
  module Record
    # A thread as the recording names it; start_ns counts from the segment's start.
    ThreadInfo = Struct.new(:id, :native_id, :start_ns, :name) do
      # What reports call it, and options take: "worker", or "thread 11" where it has no name.
      #: () -> String
      def title = name.empty? ? "thread #{id}" : name
    end

    # One process in a recording (or one start/stop within it). Tables are parallel arrays indexed by id; treat as frozen.
    class Segment
      # @return [Header]
      attr_reader :header
      # @return [Object, nil] the recording it is of, where several are read together
      attr_reader :recording
      # @return [Hash{Integer => Frame}]
      attr_reader :frames
      # @return [Array<Integer>] by node id: the caller's node (node 0, the empty stack, is its own)
      attr_reader :parents
      # @return [Array<Integer>] by node id: the frame's id
      attr_reader :node_frames
      # @return [Array<Integer>] by node id: the line that was running, 0 where none
      attr_reader :lines
      # @return [Hash{Integer => ThreadInfo}]
      attr_reader :threads
      # @return [Hash{String => Object}] the last STAT
      attr_reader :stats
      # @return [Hash{String => Object}, nil] nil when the process ended without stopping
      attr_reader :tail
      # @return [Array<Tally>] every weight of the segment, with what was open at the last flush
      attr_reader :tallies
      # @return [Array<Hash{String => String}, nil>] by number: what the program said samples were for; set 0 is {}
      attr_reader :label_sets
      # @return [Array<Mark>] pieces of work that ended: the slowest of each flush
      attr_reader :marks
      # @return [Array<Work>] all work that ended, by label set
      attr_reader :works
      # @return [Array<WorkStep>] the same by flush, in the order of time
      attr_reader :work_steps
      # @return [Array<Test>] what tests took, by label set
      attr_reader :tests
      # @return [Hash{Integer => Query}] queries to databases, by number
      attr_reader :queries
      # @return [Array<QuerySum>] what was asked, by label set and query
      attr_reader :query_sums
      # @return [Hash{[Integer, Integer] => Array<QueryPart>}] what was asked in pieces of work that are told one by one, by thread and end
      attr_reader :query_parts
      # @return [Integer] rows of all SAMP chunks
      attr_reader :row_count
      # @return [Array<Collection>] runs of the garbage collector, in the order of time
      attr_reader :collections
      # @return [Array<String>] every string the segment holds: names and paths of frames, names of threads
      attr_reader :strings

      # @return [Calls] what `pitwall trace` counted; empty in other recordings
      attr_reader :calls
      # @return [Hash{String => Object}] how it was traced (TRAC of doc/record-format.md); empty in other recordings
      attr_reader :tracing

      # What threads had spent since their last row when the process last wrote.
      # @return [Array<[thread_id, state, node_id, wall, cpu, label_id]>] wall and cpu in unit_ns
      attr_reader :open_rows

      # @return [Array<Site>] where objects were allocated and what became of them; empty where none were followed
      attr_reader :sites
      # @return [Array<LivingPoint>] what lived over time, in that order; empty where it was not recorded
      attr_reader :living_points
      # @return [Holders, nil] who keeps growing sites' objects alive; nil where nobody asked
      attr_reader :holders
      # @return [Array<EqualStrings>] contents that there were several of, the most bytes first; empty where they were not looked at
      attr_reader :equal_strings
      # @return [Integer, nil] strings that could not be compared; nil where none were looked at
      attr_reader :uncompared_strings
      # @return [AllocationTotals, nil] nil where no objects were followed
      attr_reader :allocation_totals

      # @api private
      def initialize(header:, strings:, frames:, parents:, node_frames:, lines:, threads:, stats:, tail:, tallies:, row_count:,
                     open_rows:, row_source:, collections: [], sites: [], allocation_totals: nil, equal_strings: [], uncompared_strings: nil,
                     calls: Calls.new, tracing: {}, label_sets: [{}], marks: [], works: [], work_steps: [], tests: [],
                     queries: {}, query_sums: [], query_parts: {}, syscall_source: nil, syscall_totals: {}, syscall_facts: nil,
                     living_points: [], holders: nil)
        @header = header
        @strings = strings
        @frames = frames
        @parents = parents
        @node_frames = node_frames
        @lines = lines
        @threads = threads
        @stats = stats
        @tail = tail
        @tallies = tallies
        @label_sets = label_sets
        @marks = marks
        @works = works
        @work_steps = work_steps
        @tests = tests
        @queries = queries
        @query_sums = query_sums
        @query_parts = query_parts
        @row_count = row_count
        @open_rows = open_rows
        @row_source = row_source
        @collections = collections
        @sites = sites
        @allocation_totals = allocation_totals
        @calls = calls
        @tracing = tracing
        @equal_strings = equal_strings
        @living_points = living_points
        @holders = holders
        @uncompared_strings = uncompared_strings
        @syscall_source = syscall_source
        @syscall_ids = syscall_totals
        @syscall_facts = syscall_facts
      end

      # @return [SyscallFacts, nil] how system calls were seen; nil where nobody looked at them
      attr_reader :syscall_facts

      # Were system calls recorded, or counted?
      #: () -> bool
      def syscalls? = !@syscall_facts.nil?

      # Are there rows, or only totals?
      #: () -> bool
      def syscall_rows? = !@syscall_source.nil?

      # Were calls only counted, as with --count?
      #: () -> bool
      def syscalls_counted?
        collectors = header.settings["collectors"]
        setting = collectors["syscalls"] if collectors.is_a?(Hash)
        setting.is_a?(Hash) && %w[1 true].include?(setting["count"].to_s)
      end

      # Reads the file once more and yields each call, those of a thread in the order of their ends. None where calls were only counted.
      # @yield [Syscall] its stack: frame(node), parents[node], lines[node], as for samples
      # @raise [BadRecording] when the file was changed since
      #: () { (Syscall) -> void } -> void
      def each_syscall(&block)
        @syscall_source&.call(self, &block)
      end

      # @return [Hash{String => Array(Integer, Integer, Integer)}] by name: calls, how many failed, ns
      #: () -> Hash[String, [Integer, Integer, Integer]]
      def syscall_totals = @syscall_ids.transform_keys { |id| strings[id] || "(lost name)" }

      # Was recorded what lived over time?
      #: () -> bool
      def growth? = living_points.any?

      # Were calls traced?
      #: () -> bool
      def traced? = !tracing.empty?

      # A copy with some parts replaced; the others are shared.
      # @param parts the attributes by name
      #: (**untyped) -> Segment
      def with(**parts)
        dup.tap { |copy| parts.each { |name, value| copy.instance_variable_set(:"@#{name}", value) } }
      end

      # Were samples to be taken?
      #: () -> bool
      def sampled? = header.mode != "none" || row_count.positive?

      # The frame of a node; one called "(unresolved)" where the process ended before naming it.
      #: (Integer) -> Frame
      def frame(node_id)
        id = node_frames[node_id]
        frames[id] || Frame.unresolved(id)
      end

      #: (Integer) -> ThreadInfo
      def thread(id) = threads[id] || ThreadInfo.new(id, 0, 0, "")

      # The labels of a set's number; none for one that was lost.
      #: (Integer) -> Hash[String, String]
      def labels(id) = label_sets[id] || {}

      # Did the program say what its work was for?
      #: () -> bool
      def labelled? = label_sets.size > 1

      #: () -> Integer
      def unit_ns = header.unit_ns

      # Reads the file once more, chunk by chunk, for those who need the time line and not its sums.
      # @yield [Rows]
      # @raise [BadRecording] when the file was changed since
      #: () { (Rows) -> void } -> void
      def each_rows(&block) = @row_source.call(&block)

      # A cumulative counter of STAT; 0 when it was not written.
      #: (String) -> Integer
      def stat(name)
        value = stats[name]
        value.is_a?(Integer) ? value : 0
      end
    end
  end
end
