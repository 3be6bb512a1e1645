# frozen_string_literal: true

module Pitwall
  module Analyse
    # Which segments are of one process: those of its files that follow each other, of a recording that was paused, or before and after an exec.
    # Processes of several containers may have the same id: what overlaps in time is never one.
    module Processes
      # Starts are told by a clock that may be set.
      SLACK_NS = 100_000_000
      private_constant :SLACK_NS

      # In the order of their first segments.
      #: (Array[Record::Segment]) -> Array[Array[Record::Segment]]
      def self.of(segments)
        places = {}.compare_by_identity
        segments.each_with_index { |segment, at| places[segment] = at }
        segments.group_by { |segment| identity(segment) }.values.flat_map { |alike| apart(alike) }.sort_by { |parts| parts.map { |part| places[part] }.min }
      end

      # One whose id or start is unknown is by itself.
      def self.identity(segment)
        header = segment.header
        header.pid && header.started_at_ns ? [header.pid, header.host] : segment.object_id
      end
      private_class_method :identity

      def self.apart(alike)
        return [alike] if alike.size == 1

        alike.sort_by { |segment| segment.header.started_at_ns }.each_with_object([]) do |segment, chains|
          chain = chains.find { |parts| ended_at(parts.last) <= segment.header.started_at_ns + SLACK_NS }
          chain ? chain << segment : chains << [segment]
        end
      end
      private_class_method :apart

      def self.ended_at(segment) = segment.header.started_at_ns + segment.stat("elapsed_ns")
      private_class_method :ended_at
    end
  end
end
