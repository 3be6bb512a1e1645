# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record/tally"

module Pitwall
  module Analyse
    # A part of a recording's time. Moments count from the start of the first process, for all processes.
    #
    # A row that lies on a bound is divided in proportion to its time. The parts before and after a moment add up to the
    # whole exactly, in wall time, CPU time and captures.
    class TimeRange
      # @return [Integer] ns
      attr_reader :from_ns
      # @return [Integer, nil] ns; nil: to the end
      attr_reader :to_ns

      # @param text [String, nil] as it was typed, e.g. "2s..5s"
      #: (?Integer?, ?Integer?, ?text: String?) -> void
      def initialize(from_ns = 0, to_ns = nil, text: nil)
        @from_ns = from_ns || 0
        @to_ns = to_ns
        @text = text
      end

      # As it was typed.
      #: () -> String
      def to_s = @text || "#{@from_ns}ns..#{"#{@to_ns}ns" if @to_ns}"

      # Length of a recording, from the start of its first process to the end of its last, in ns.
      #: (Array[Record::Segment]) -> Integer
      def self.length(segments)
        segments.map { |segment| shift(segments, segment) + own_length(segment) }.max || 0
      end

      # When a process started, in ns since the start of the first.
      #: (Array[Record::Segment], Record::Segment) -> Integer
      def self.shift(segments, segment)
        first = segments.filter_map { |other| other.header.started_at_ns }.min
        first ? (segment.header.started_at_ns || first) - first : 0
      end

      # STAT may be missing, and a thread's rows may end a little later than it says.
      def self.own_length(segment)
        walls = Hash.new { |known, id| known[id] = segment.thread(id).start_ns }
        segment.tallies.each do |tally|
          tally.each { |_, wall, _, _| walls[tally.thread_id] += wall * segment.unit_ns }
        end
        [segment.stat("elapsed_ns"), *walls.values].max
      end
      private_class_method :own_length

      # Whether a recording has anything whose time is known: samples, marked requests, or rows of system calls.
      #: (Array[Record::Segment]) -> bool
      def self.timed?(segments)
        segments.any? do |segment|
          segment.row_count.positive? || segment.open_rows.any? || segment.marks.any? || segment.syscall_rows?
        end
      end

      # Copies of the segments with what happened in the range. Sums without times are left out: traced calls,
      # allocation sites, tests, queries outside of marked requests. Requests and collections that ran in a part of the
      # range are kept whole.
      # @raise [BadRecording] when the file has changed since it was read
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments)
        segments.map do |segment|
          shift = TimeRange.shift(segments, segment)
          from = [@from_ns - shift, 0].max
          clipped(segment, from, @to_ns ? [@to_ns - shift, from].max : Float::INFINITY)
        end
      end

      private

      def clipped(segment, from, to)
        cut = Cut.new(segment, from, to)
        tallies, open_rows, count = cut.sums
        inside = ->(start, ending) { ending > from && start < to || (start == ending && start.between?(from, to)) }
        marks = segment.marks.select { |mark| inside.call(mark.start_ns, mark.end_ns) }
        length = segment.stat("elapsed_ns")
        segment.with(
          tallies: tallies, open_rows: open_rows, row_count: count, row_source: ->(&block) { cut.each(&block) },
          threads: segment.threads.transform_values { |info| started(info, from) },
          marks: marks, works: works(marks), work_steps: [],
          collections: segment.collections.select { |run| inside.call(run.start_ns, run.end_ns) },
          query_sums: [], query_parts: parts(segment, marks), work_counters: [],
          calls: Record::Calls.new, sites: [], allocation_totals: nil, living_points: [], tests: [],
          syscall_totals: {}, syscall_source: syscalls(segment, from, to),
          window: [[from, length].min, [to, length].min], unfiltered: segment.source
        )
      end

      def started(info, from) = info.dup.tap { |copy| copy.start_ns = [copy.start_ns, from].max }

      # What is known of the work in the range: the marked requests.
      def works(marks)
        marks.group_by(&:label_id).map do |label, group|
          Record::Work.new(label, group.size, group.sum(&:duration_ns))
        end
      end

      def parts(segment, marks)
        segment.query_parts.slice(*marks.map { |mark| [mark.thread_id, mark.end_ns] })
      end

      # A system call counts where it ended.
      def syscalls(segment, from, to)
        return unless segment.syscall_rows?

        lambda do |_, &block|
          segment.each_syscall { |call| block.call(call) if call.at_ns >= from && call.at_ns < to }
        end
      end
    end
  end
end

require "pitwall/analyse/filters/time_range/cut"
