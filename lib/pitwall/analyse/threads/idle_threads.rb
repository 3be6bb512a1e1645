# frozen_string_literal: true

require "pitwall/analyse/threads/threads"
require "pitwall/analyse/threads/waits"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Finds idle threads: threads that waited for work almost all the time. Examples are a pool's thread at an empty
    # queue, a reaper in sleep, a main thread in join.
    # Their wall time does not show where time goes, and a few of them would dominate a report.
    # A thread that waited for a lock, a connection or an answer is not idle (see Waits).
    module IdleThreads
      # An idle thread waits for work for at least this share of its wall time.
      MIN_WAITED = 0.95
      # An idle thread uses at most this share of its wall time as CPU time, if the Ruby reports thread states.
      MAX_CPU = 0.02
      # Without thread states, every tick wakes the thread. One tick costs it up to 30 µs of CPU time.
      TICK_NS = 30_000
      # Without thread states, an idle thread uses at most this share of its wall time as CPU time besides the ticks.
      # MAX_CPU is too much here: N busy threads that share the GVL in one long call each use 1/N of their wall time.
      MAX_CPU_BESIDE_TICKS = 0.005
      # All threads left out together use at most this share of the recording's CPU time.
      MAX_CPU_TOGETHER = 0.05
      # Ticks alone may exceed MAX_CPU_TOGETHER. So up to this much CPU time of each capture counts as Pitwall's.
      # Rows of a thread that held the GVL have more.
      MOST_TICK_NS = 100_000
      private_constant :MIN_WAITED, :MAX_CPU, :TICK_NS, :MAX_CPU_BESIDE_TICKS, :MAX_CPU_TOGETHER, :MOST_TICK_NS

      # Sums of one thread, in ns. waited: time waiting for work. own: CPU time; later without the CPU time of ticks.
      Thread = Struct.new(:segment, :id, :wall, :cpu, :captures, :waited, :own) do
        def states? = segment.header.thread_states?

        def idle? = wall.positive? && waited >= wall * MIN_WAITED && cpu <= max_cpu

        def max_cpu = states? ? wall * MAX_CPU : captures * TICK_NS + wall * MAX_CPU_BESIDE_TICKS
      end
      private_constant :Thread

      # Idle threads and Pitwall's own threads, by segment. Whether a thread is idle depends on all of its samples, so
      # that the reports of parts of a recording add up to the report of all of it.
      # @return segment → ids of the threads to leave out; empty when all of the program's threads are idle
      #: (Array[Record::Segment]) -> Hash[Record::Segment, Array[Integer]]
      def self.find(segments)
        threads = segments.flat_map do |segment|
          waits = Waits.new(segment.source)
          segment.source.tallies.group_by(&:thread_id).map { |id, tallies| thread(segment, id, tallies, waits) }
        end
        own, others = threads.partition { |thread| Threads.own?(thread.segment.thread(thread.id).name) }
        idle, busy = others.partition(&:idle?)
        own += own_traced_threads(segments)
        return {}.compare_by_identity if busy.empty? && others.any?

        left_out = own + within_cpu_limit(idle, others.sum(&:cpu))
        left_out.group_by(&:segment).each_with_object({}.compare_by_identity) do |(segment, group), ids|
          ids[segment] = group.map(&:id)
        end
      end

      # Pitwall's own threads in traced calls. Traced calls of other threads do not show what the threads waited for.
      def self.own_traced_threads(segments)
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

      # Those of the threads that are left out: by rising CPU time until their sum exceeds MAX_CPU_TOGETHER.
      def self.within_cpu_limit(threads, all_cpu)
        most = all_cpu * MAX_CPU_TOGETHER
        return threads if threads.sum(&:cpu) <= most

        threads.reject(&:states?).group_by(&:segment).each { |segment, group| subtract_ticks(segment, group) }
        candidates = threads.select { |thread| thread.states? || thread.own <= thread.wall * MAX_CPU_BESIDE_TICKS }
        sum = 0
        candidates.sort_by(&:own).take_while { |thread| (sum += thread.own) <= most }
                  .sort_by { |thread| threads.index(thread) }
      end

      # Sets own to the CPU time without ticks, from a second pass over the rows.
      # If the file is gone or has changed, all CPU time counts as the thread's own.
      def self.subtract_ticks(segment, threads)
        own = threads.to_h { |thread| [thread.id, 0] }
        unit = segment.unit_ns
        segment.source.each_rows do |rows|
          rows.each { |id, _, _, _, cpu, captures| own[id] += [cpu * unit - captures * MOST_TICK_NS, 0].max if own[id] }
        end
        threads.each { |thread| thread.own = own[thread.id] }
      rescue BadRecording, SystemCallError
        nil
      end
      private_class_method :own_traced_threads, :thread, :within_cpu_limit, :subtract_ticks
    end
  end
end
