# frozen_string_literal: true

module Pitwall
  module Analyse
    # Groups segments by process.
    # A process has several segments if its recording has several files or was paused, or if it called exec.
    # Processes in different containers may have the same id, so segments that overlap in time are never one process.
    module Processes
      # The clock of the start times may be set while a program runs, so this much overlap is allowed.
      SLACK_NS = 100_000_000
      private_constant :SLACK_NS

      # Segments of each process, in the order of the processes' first segments.
      #: (Array[Record::Segment]) -> Array[Array[Record::Segment]]
      def self.of(segments)
        positions = {}.compare_by_identity
        segments.each_with_index { |segment, at| positions[segment] = at }
        groups = segments.group_by { |segment| identity(segment) }.values
        groups.flat_map { |group| split(group) }.sort_by { |parts| parts.map { |part| positions[part] }.min }
      end

      # A segment with an unknown process id or start is a process of its own.
      def self.identity(segment)
        header = segment.header
        header.pid && header.started_at_ns ? [header.pid, header.host] : segment.object_id
      end
      private_class_method :identity

      # Splits segments with the same process id and host into processes.
      def self.split(group)
        return [group] if group.size == 1

        group.sort_by { |segment| segment.header.started_at_ns }.each_with_object([]) do |segment, chains|
          chain = chains.find { |parts| ended_at(parts.last) <= segment.header.started_at_ns + SLACK_NS }
          chain ? chain << segment : chains << [segment]
        end
      end
      private_class_method :split

      def self.ended_at(segment) = segment.header.started_at_ns + segment.stat("elapsed_ns")
      private_class_method :ended_at
    end
  end
end
