# frozen_string_literal: true

require "pitwall/analyse/threads"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Threads that waited at one place all the time (a reaper's sleep, a main thread in join). Their wall time says nothing of
    # where time goes, and a few of them bury everything else.
    module IdleThreads
      # Share of a thread's wall time at one stack.
      AT_ONE_STACK = 0.95
      # Share of its wall time on the CPU at most, where the Ruby tells thread states.
      MOST_CPU = 0.02
      # Where it doesn't, every tick wakes the thread: that much CPU a tick is ours, and a little is its own. N threads that
      # share the GVL in one long call have only an Nth of their wall time as CPU each, and still do all the work.
      TICK_NS = 30_000
      LITTLE_CPU = 0.005
      # Share of the recording's CPU that all threads left out may hold together. Ticks alone may be more than that, but never so
      # much in one row; a thread that had the GVL has rows with all of its turn.
      TOGETHER = 0.05
      MOST_TICK_NS = 100_000
      private_constant :AT_ONE_STACK, :MOST_CPU, :TICK_NS, :LITTLE_CPU, :TOGETHER, :MOST_TICK_NS

      # A thread's sums, in ns; at_one: of the stack it was longest at; own: CPU that is not of our ticks.
      Thread = Struct.new(:segment, :id, :wall, :cpu, :captures, :at_one, :own) do
        def states? = segment.header.thread_states?

        def idle? = wall.positive? && at_one >= wall * AT_ONE_STACK && cpu <= (states? ? wall * MOST_CPU : captures * TICK_NS + wall * LITTLE_CPU)
      end
      private_constant :Thread

      # Those that continuous recording has for itself are among them, whatever they did.
      # @return segment → ids of its idle threads; empty when no thread did anything else
      #: (Array[Record::Segment]) -> Hash[Record::Segment, Array[Integer]]
      def self.find(segments)
        threads = segments.flat_map { |segment| segment.tallies.group_by(&:thread_id).map { |id, tallies| thread(segment, id, tallies) } }
        own, others = threads.partition { |thread| Threads.own?(thread.segment.thread(thread.id).name) }
        idle, busy = others.partition(&:idle?)
        return {}.compare_by_identity if busy.empty?

        (own + light(idle, others.sum(&:cpu))).group_by(&:segment).each_with_object({}.compare_by_identity) { |(segment, left), found| found[segment] = left.map(&:id) }
      end

      def self.thread(segment, id, tallies)
        wall = cpu = captures = 0
        places = Hash.new(0)
        tallies.each do |tally|
          tally.each do |node, node_wall, node_cpu, node_captures|
            wall += node_wall
            cpu += node_cpu
            captures += node_captures
            places[node] += node_wall
          end
        end
        unit = segment.unit_ns
        Thread.new(segment, id, wall * unit, cpu * unit, captures, (places.values.max || 0) * unit, cpu * unit)
      end

      # Those that together hold little of all CPU: all, or as many as do, those with least first.
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
      private_class_method :thread, :light, :leave_out_ticks
    end
  end
end
