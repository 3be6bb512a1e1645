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

    # What of a Work ended between two flushes. at_ns: of the last piece that is known one by one, since the segment's start.
    WorkStep = Struct.new(:label_id, :at_ns, :count, :total_ns)

    # All runs of a test (those that ended under a set of labels). cpu_ns: of the test's own thread. objects and gc_ns are of the
    # process, of the `counted` runs that had no other test beside them.
    Test = Struct.new(:label_id, :count, :total_ns, :cpu_ns, :counted, :objects, :gc_ns)
  end
end
