# frozen_string_literal: true

require "pitwall/analyse/selection"

module Pitwall
  module Analyse
    # Time by thread and state.
    module Threads
      # wall_ns and cpu_ns; states: {state number => wall ns}; pid may be nil.
      Row = Struct.new(:pid, :id, :native_id, :name, :wall, :cpu, :captures, :states)

      # Longest wall time first.
      #: (Array[Record::Segment], ?Selection) -> Array[Row]
      def self.rows(segments, selection = Selection.all)
        segments.select { |segment| selection.segment?(segment) }.flat_map { |segment| of(segment, selection) }
                .sort_by { |row| [-row.wall, row.pid.to_i, row.id] }
      end

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
