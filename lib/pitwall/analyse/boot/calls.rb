# frozen_string_literal: true

module Pitwall
  module Analyse
    class Boot
      # Gives each file-system call to the innermost load of its thread at its time.
      module Calls
        module_function

        # @return [Hash{Integer => Integer}] number of calls by a load's id
        #: (Record::Segment) -> Hash[Integer, Integer]
        def of(segment)
          loads = segment.loads.sort_by(&:id).group_by { |load| segment.thread(load.thread).native_id }
          times = Hash.new { |found, tid| found[tid] = [] }
          segment.each_syscall { |call| times[call.tid] << call.at_ns if call.at_ns && loads.key?(call.tid) }
          times.each_with_object(Hash.new(0)) { |(tid, at), counts| count(loads[tid], at.sort, counts) }
        end

        # Both in the order of time.
        def count(loads, times, counts)
          open = []
          next_load = 0
          times.each do |at|
            while next_load < loads.size && loads[next_load].at_ns <= at
              open << loads[next_load]
              next_load += 1
            end
            open.pop while open.any? && open.last.at_ns + open.last.wall_ns < at
            counts[open.last.id] += 1 if open.any?
          end
        end
        private_class_method :count
      end
    end
  end
end
