# frozen_string_literal: true

module Pitwall
  module Analyse
    # Threads that waited at one place all the time (a reaper's sleep, a main thread in join). Their wall time says nothing of
    # where time goes, and a few of them bury everything else.
    module IdleThreads
      # Share of a thread's wall time at one stack, and at most so much CPU; where the Ruby tells no states every tick
      # wakes the thread, which is CPU of ours.
      AT_ONE_STACK = 0.95
      MOST_CPU = { true => 0.02, false => 0.4 }.freeze
      private_constant :AT_ONE_STACK, :MOST_CPU

      # @return segment → ids of its idle threads; empty when no thread did anything else
      #: (Array[Record::Segment]) -> Hash[Record::Segment, Array[Integer]]
      def self.find(segments)
        busy = false
        found = segments.to_h do |segment|
          idle, others = segment.tallies.group_by(&:thread_id).partition { |_, tallies| idle?(segment, tallies) }
          busy ||= others.any?
          [segment, idle.map(&:first)]
        end
        busy ? found.reject { |_, ids| ids.empty? }.compare_by_identity : {}.compare_by_identity
      end

      def self.idle?(segment, tallies)
        wall = cpu = 0
        places = Hash.new(0)
        tallies.each do |tally|
          tally.each do |node, node_wall, node_cpu, _|
            wall += node_wall
            cpu += node_cpu
            places[node] += node_wall
          end
        end
        wall.positive? && places.each_value.max >= wall * AT_ONE_STACK && cpu <= wall * MOST_CPU.fetch(segment.header.thread_states?)
      end
      private_class_method :idle?
    end
  end
end
