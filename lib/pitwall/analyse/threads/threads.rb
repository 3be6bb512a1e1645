# frozen_string_literal: true

require "pitwall/analyse/threads/processes"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Time by thread and state.
    module Threads
      # wall_ns and cpu_ns; states: {state number => wall ns}; pid may be nil.
      Row = Struct.new(:pid, :id, :native_id, :name, :wall, :cpu, :captures, :states)

      # Of continuous recording, and of --delay and --duration.
      OWN = ["pitwall continuous", "pitwall control", "pitwall window"].freeze
      private_constant :OWN

      # Longest wall time first; a thread of which several segments tell, as files follow each other, is one row.
      #: (Array[Record::Segment], ?Selection) -> Array[Row]
      def self.rows(segments, selection = Selection.all)
        sums = {}
        lanes(segments.select { |segment| selection.segment?(segment) }).each do |segment, numbers|
          of(segment, selection).each do |row|
            lane = numbers.fetch(row.id)
            sums.key?(lane) ? add(sums[lane], row) : sums[lane] = row
          end
        end
        sums.values.reject { |row| own?(row.name) }.sort_by { |row| [-row.wall, row.pid.to_i, row.id] }
      end

      # Which threads of several segments are one: segment → thread's id → the number of its lane, from 0. Those of one process, native thread and
      # name are, where a segment has no two of these (M:N).
      #: (Array[Record::Segment]) -> Hash[Record::Segment, Hash[Integer, Integer]]
      def self.lanes(segments)
        count = -1
        Processes.of(segments).each_with_object({}.compare_by_identity) do |parts, lanes|
          known = {}
          parts.each do |segment|
            alike = ids(segment).group_by { |id| segment.thread(id).to_h.values_at(:native_id, :name) }
            lanes[segment] = alike.each_with_object({}) do |(key, ids), numbers|
              goes_on = key.first.to_i.positive? && ids.size == 1
              ids.each { |id| numbers[id] = goes_on ? known[key] ||= (count += 1) : (count += 1) }
            end
          end
        end
      end

      # Of the threads of which something is known.
      #: (Record::Segment) -> Array[Integer]
      def self.ids(segment) = [*segment.tallies, *segment.calls, *segment.marks].map(&:thread_id).uniq

      # Is a thread of that name Pitwall's?
      #: (String) -> bool
      def self.own?(name) = OWN.include?(name)

      def self.add(row, more)
        row.wall += more.wall
        row.cpu += more.cpu
        row.captures += more.captures
        row.states.update(more.states) { |_, wall, other| wall + other }
      end
      private_class_method :add

      def self.of(segment, selection)
        rows = {}
        segment.tallies.each do |tally|
          next unless selection.tally?(segment, tally)

          row = rows[tally.thread_id] ||= row(segment, tally.thread_id)
          wall = cpu = captures = 0
          tally.each do |_, node_wall, node_cpu, node_captures|
            wall += node_wall
            cpu += node_cpu
            captures += node_captures
          end
          row.wall += wall * segment.unit_ns
          row.cpu += cpu * segment.unit_ns
          row.captures += captures
          row.states[tally.state] = row.states.fetch(tally.state, 0) + wall * segment.unit_ns
        end
        add_calls(segment, selection, rows) if segment.tallies.empty?
        rows.values
      end

      # Without what its fibers waited for each other, and it for other threads.
      def self.add_calls(segment, selection, rows)
        segment.calls.each do |call|
          next unless selection.calls?(segment, call.thread_id)

          row = rows[call.thread_id] ||= row(segment, call.thread_id)
          row.wall += [call.wall - call.probe, 0].max
          row.cpu += [call.cpu - call.probe, 0].max
        end
      end
      private_class_method :add_calls
      private_class_method :of

      def self.row(segment, id)
        info = segment.thread(id)
        Row.new(segment.header.pid, id, info.native_id, info.name, 0, 0, 0, {})
      end
      private_class_method :row
    end
  end
end
