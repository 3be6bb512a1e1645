# frozen_string_literal: true

require "pitwall/analyse/caches/caches"
require "pitwall/record/vm_counter"

module Pitwall
  module Analyse
    # Counters of the VM's caches by piece of work: a request, a job, a test.
    #
    # Ruby's counters (Record::VM_COUNTERS) are the process's. They are known for work that had no other work beside it.
    # Pitwall's counters (Caches::OWN) are known for all work of a recording of caches: each change has its thread, time
    # and labels.
    class WorkCounters
      # Sum of a counter over pieces of work.
      # works: pieces of work whose increase is known. increase: their sum.
      Sum = Struct.new(:works, :increase)

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # Whether anything was counted.
      #: () -> bool
      def any? = names.any?

      # Names of the counters that were counted, in the order of the vocabulary.
      #: () -> Array[String]
      def names
        @names ||= begin
          found = @segments.flat_map do |segment|
            segment.work_counters.map(&:name) | segment.mark_counters.each_value.flat_map(&:keys)
          end.uniq
          own = @segments.any?(&:caches?) ? Caches::OWN.keys : []
          (Record::VM_COUNTERS.keys & found) + (found - Record::VM_COUNTERS.keys) + own
        end
      end

      # Ruby's counters that no Ruby of the recording has.
      #: () -> Array[String]
      def not_counted = any? ? Record::STAT_COUNTERS - names : []

      # The increase of each counter in one request.
      # @return [Hash{String => Integer}] without counters that are not known for it
      #: (Requests::Row) -> Hash[String, Integer]
      def of_request(row)
        mark = row.mark
        found = row.segment.mark_counters.fetch([mark.thread_id, mark.end_ns], {})
        return found unless row.segment.caches?

        changes = by_thread(row.segment).fetch(mark.thread_id, [])
        first = changes.bsearch_index { |change| change.at_ns >= mark.start_ns } || changes.size
        last = changes.bsearch_index { |change| change.at_ns > mark.end_ns } || changes.size
        found.merge(own(changes[first...last]))
      end

      # Sums over the work that ended under each label set of a process. Work within other work counts in both.
      # Pitwall's counters are known for all work.
      # @return [Hash{Integer => Hash{String => Sum}}] by number of the label set
      #: (Record::Segment) -> Hash[Integer, Hash[String, Sum]]
      def of_labels(segment)
        sums = by_set(segment).transform_values do |rows|
          rows.to_h { |row| [row.name, Sum.new(row.counted, row.increase)] }
        end
        return sums unless segment.caches?

        changes = segment.cache_changes.group_by(&:label)
        works = segment.works.to_h { |work| [work.label_id, work.count] }
        (changes.keys | works.keys).each do |set|
          found = own(changes.fetch(set, [])).transform_values { |count| Sum.new(works.fetch(set, 0), count) }
          sums[set] = sums.fetch(set, {}).merge(found)
        end
        sums
      end

      # The increase of each counter in all runs of a test.
      # @param sets [Array<[Record::Segment, Integer]>] the test's label sets, with their segments
      # @param label [Array(String, String)] the label that names the test: also changes of labels below it count
      # @param runs [Integer] number of runs; a counter of Ruby's that is not known for all of them is left out
      #: (Array[[Record::Segment, Integer]], [String, String], Integer) -> Hash[String, Integer]
      def of_test(sets, label, runs)
        rows = sets.flat_map { |segment, set| by_set(segment).fetch(set, []) }.group_by(&:name)
        found = rows.select { |_, group| group.sum(&:counted) == runs }
                    .transform_values { |group| group.sum(&:increase) }
        name, value = label
        sets.map(&:first).uniq.reduce(found) do |all, segment|
          next all unless segment.caches?

          all.merge(own(labelled(segment, name).fetch(value, []))) { |_, a, b| a + b }
        end
      end

      private

      # The changes under each value of a label.
      def labelled(segment, name)
        @labelled ||= {}.compare_by_identity
        (@labelled[segment] ||= {})[name] ||=
          segment.cache_changes.group_by { |change| segment.labels(change.label)[name] }
      end

      def by_set(segment)
        @by_set ||= {}.compare_by_identity
        @by_set[segment] ||= segment.work_counters.group_by(&:label_id)
      end

      # Changes of a process by thread, each in the order of time.
      def by_thread(segment)
        @by_thread ||= {}.compare_by_identity
        @by_thread[segment] ||= segment.cache_changes.group_by(&:thread).transform_values { |all| all.sort_by(&:at_ns) }
      end

      # Pitwall's counters of these changes.
      def own(changes)
        counts = Caches::OWN.transform_values { 0 }
        changes.each do |change|
          counter = Caches.counter_of(change.kind)
          counts[counter] += 1 if counter
        end
        counts
      end
    end
  end
end
