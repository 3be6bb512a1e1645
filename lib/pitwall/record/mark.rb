# frozen_string_literal: true

module Pitwall
  module Record
    # A piece of work (a request, a job) that ended: in which thread, under which labels, when (since the segment's start) and how long it took.
    # A segment has the slowest of each flush one by one.
    Mark = Struct.new(:thread_id, :label_id, :end_ns, :duration_ns) do
      #: () -> Integer
      def start_ns = end_ns - duration_ns
    end

    # All work that ended under a set of labels.
    Work = Struct.new(:label_id, :count, :total_ns)
  end
end
