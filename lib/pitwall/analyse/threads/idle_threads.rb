# frozen_string_literal: true

require "pitwall/analyse/threads/threads"
require "pitwall/analyse/threads/waits"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Threads that waited for work all the time (a pool's thread at an empty queue, a reaper's sleep, a main thread in join). Their
    # wall time says nothing of where time goes, and a few of them would dominate the report. A thread that waited for a lock, a
    # connection or an answer is none of them (Waits).
    module IdleThreads
      # Share of a thread's wall time that it waited for work.
      WAITED = 0.95
      # An idle thread uses at most this share of its wall time as CPU time, where the Ruby tells thread states.
      MOST_CPU = 0.02
      # Where it doesn't, every tick wakes the thread. One tick costs it up to 30 µs of CPU; a little more is its own. N threads that
      # share the GVL in one long call have only an Nth of their wall time as CPU each, and still do all the work.
      TICK_NS = 30_000
      LITTLE_CPU = 0.005
      # Share of the recording's CPU that all threads left out may hold together. Our ticks alone may exceed that share, but one row
      # never holds so much of them. A thread that had the GVL has larger rows.
      TOGETHER = 0.05
      MOST_TICK_NS = 100_000
      private_constant :WAITED, :MOST_CPU, :TICK_NS, :LITTLE_CPU, :TOGETHER, :MOST_TICK_NS

      # A thread's sums, in ns; waited: for work; own: all CPU, later without our ticks.
      Thread = Struct.new(:segment, :id, :wall, :cpu, :captures, :waited, :own) do
        def states? = segment.header.thread_states?

        def idle? = wall.positive? && waited >= wall * WAITED && cpu <= (states? ? wall * MOST_CPU : captures * TICK_NS + wall * LITTLE_CPU)
      end
      private_constant :Thread

      # Pitwall's own threads are always left out.
      # @return segment → ids of its idle threads; empty when no thread did anything else
      #: (Array[Record::Segment]) -> Hash[Record::Segment, Array[Integer]]
      def self.find(segments)
        threads = segments.flat_map do |segment|
          waits = Waits.new(segment)
          segment.tallies.group_by(&:thread_id).map { |id, tallies| thread(segment, id, tallies, waits) }
        end
        own, others = threads.partition { |thread| Threads.own?(thread.segment.thread(thread.id).name) }
        idle, busy = others.partition(&:idle?)
        own += traced(segments)
        return {}.compare_by_identity if busy.empty? && others.any?

        (own + light(idle, others.sum(&:cpu))).group_by(&:segment).each_with_object({}.compare_by_identity) { |(segment, left), found| found[segment] = left.map(&:id) }
      end

      # Calls of Pitwall's own threads. Nobody tells of other threads' calls what they waited for.
      def self.traced(segments)
        segments.flat_map do |segment|
          ids = segment.calls.map(&:thread_id).uniq.select { |id| Threads.own?(segment.thread(id).name) }
          ids.map { |id| Thread.new(segment, id, 0, 0, 0, 0, 0) }
        end
      end

      def self.thread(segment, id, tallies, waits)
        wall = cpu = captures = waited = 0
        main = segment.thread(id).native_id == segment.header.pid
        tallies.each do |tally|
          tally.each do |node, node_wall, node_cpu, node_captures|
            wall += node_wall
            cpu += node_cpu
            captures += node_captures
            waited += node_wall if waits.for_work?(node, main: main)
          end
        end
        unit = segment.unit_ns
        Thread.new(segment, id, wall * unit, cpu * unit, captures, waited * unit, cpu * unit)
      end

      # Leaves threads out by rising CPU time until TOGETHER is reached.
      def self.light(threads, all_cpu)
        most = all_cpu * TOGETHER
        return threads if threads.sum(&:cpu) <= most

        threads.reject(&:states?).group_by(&:segment).each { |segment, group| leave_out_ticks(segment, group) }
        sum = 0
        threads.select { |thread| thread.states? || thread.own <= thread.wall * LITTLE_CPU }.sort_by(&:own).take_while { |thread| (sum += thread.own) <= most }
               .sort_by { |thread| threads.index(thread) }
      end

      # Reads the time line once more. Where the file is gone or was changed since, all CPU counts as the thread's own.
      def self.leave_out_ticks(segment, threads)
        own = threads.to_h { |thread| [thread.id, 0] }
        unit = segment.unit_ns
        segment.each_rows do |rows|
          rows.each { |id, _, _, _, cpu, captures| own[id] += [cpu * unit - captures * MOST_TICK_NS, 0].max if own[id] }
        end
        threads.each { |thread| thread.own = own[thread.id] }
      rescue BadRecording, SystemCallError
        nil
      end
      private_class_method :traced, :thread, :light, :leave_out_ticks
    end
  end
end
