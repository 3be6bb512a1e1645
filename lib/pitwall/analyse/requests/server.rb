# frozen_string_literal: true

require "pitwall/analyse/threads/waits"

module Pitwall
  module Analyse
    # Is a recorded program a server, which ends only when it is told to?
    module Server
      # By the stacks of the main thread. A test suite that starts a server beside itself is none.
      #: (Array[Record::Segment]) -> bool
      def self.runs?(segments)
        segments.any? do |segment|
          waits = Waits.new(segment)
          main = segment.tallies.select { |tally| segment.thread(tally.thread_id).native_id == segment.header.pid }
          main.any? { |tally| tally.to_enum(:each).any? { |node, *| waits.serves?(node) } }
        end
      end

      # A server whose requests nobody marked: how long each route takes is not known.
      #: (Array[Record::Segment]) -> bool
      def self.unmarked?(segments) = segments.none? { |segment| segment.works.any? || segment.marks.any? } && runs?(segments)
    end
  end
end
