# frozen_string_literal: true

require "pitwall/analyse/threads/processes"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Time by thread and state.
    module Threads
      # wall, cpu: ns. states: {state number => wall ns}. pid may be nil.
      Row = Struct.new(:pid, :id, :native_id, :name, :wall, :cpu, :captures, :states)

      # Names of Pitwall's own threads: of continuous recording, --delay and --duration.
      OWN = ["pitwall continuous", "pitwall control", "pitwall window"].freeze
      private_constant :OWN

      # Threads, longest wall time first. A thread in several segments of one process is one row.
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

      # Finds the same thread in several segments: segment → thread id → lane, from 0. One lane is one thread.
      # Two threads are one if process, native thread id and name are equal.
      # A segment may have several such threads (M:N scheduling); each is then a lane of its own.
      #: (Array[Record::Segment]) -> Hash[Record::Segment, Hash[Integer, Integer]]
      def self.lanes(segments)
        count = -1
        Processes.of(segments).each_with_object({}.compare_by_identity) do |parts, lanes|
          known = {}
          parts.each do |segment|
            same_key = ids(segment).group_by { |id| segment.thread(id).to_h.values_at(:native_id, :name) }
            lanes[segment] = same_key.each_with_object({}) do |(key, ids), numbers|
              shared = key.first.to_i.positive? && ids.size == 1
              ids.each { |id| numbers[id] = shared ? known[key] ||= (count += 1) : (count += 1) }
            end
          end
        end
      end

      # Ids of the threads that have samples, calls or requests.
      #: (Record::Segment) -> Array[Integer]
      def self.ids(segment) = [*segment.tallies, *segment.calls, *segment.marks].map(&:thread_id).uniq

      # Whether a thread of this name is Pitwall's own.
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

      # Traced calls without the cost of the probes. Their times have no waits for other fibers or threads.
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
