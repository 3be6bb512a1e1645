# frozen_string_literal: true

module Pitwall
  module Analyse
    # Time in rows whose code is unknown, and why the code is unknown.
    module Unseen
      # A row is reported above this share of the wall time.
      NOTEWORTHY = 0.01
      WHY = {
        "(not sampled)" => "of threads that ended before the first look at them, " \
                           "or whose stacks can't be read while they wait",
        "(unresolved)" => "the process ended (killed, or by exec outside the main Ractor) before the names were written"
      }.freeze
      private_constant :NOTEWORTHY, :WHY

      module_function

      # @return [Array<String>] a line for each such row with more than one percent of the time
      #: (Array[Record::Segment]) -> Array[String]
      def notes(segments)
        all = 0
        ns = Hash.new(0)
        segments.each do |segment|
          names = names(segment)
          segment.tallies.each do |tally|
            tally.each do |node, wall,|
              all += wall * segment.unit_ns
              ns[names[node]] += wall * segment.unit_ns if names.key?(node)
            end
          end
        end
        WHY.filter_map do |name, why|
          "\"#{name}\" is #{(100 * ns[name].fdiv(all)).round}% of the time: #{why}" if ns[name] > NOTEWORTHY * all
        end
      end

      # Names of the nodes whose code is unknown.
      #: (Record::Segment) -> Hash[Integer, String]
      def names(segment)
        (1...segment.node_frames.size).each_with_object({}) do |node, found|
          frame = segment.frames[segment.node_frames[node]]
          name = frame ? frame.name : "(unresolved)"
          found[node] = name if WHY.key?(name) && (frame.nil? || frame.kind == Record::Frame::PITWALL)
        end
      end
      private_class_method :names
    end
  end
end
