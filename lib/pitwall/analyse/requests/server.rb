# frozen_string_literal: true

require "pitwall/analyse/threads/waits"

module Pitwall
  module Analyse
    # Tells whether a recorded program is a server, which runs until it is stopped.
    module Server
      # Whether the main thread's stacks are a server's. A test suite that starts a server in another thread does not
      # count.
      #: (Array[Record::Segment]) -> bool
      def self.runs?(segments)
        segments.any? do |segment|
          waits = Waits.new(segment)
          main = segment.tallies.select { |tally| segment.thread(tally.thread_id).native_id == segment.header.pid }
          main.any? { |tally| tally.to_enum(:each).any? { |node, *| waits.serves?(node) } }
        end
      end

      # Whether the program is a server that marks no requests. The times of its routes are then unknown.
      #: (Array[Record::Segment]) -> bool
      def self.unmarked?(segments)
        segments.none? { |segment| segment.works.any? || segment.marks.any? } && runs?(segments)
      end
    end
  end
end
