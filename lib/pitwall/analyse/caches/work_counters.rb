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
        own = own(row.segment) do |change|
          change.thread == mark.thread_id && change.at_ns.between?(mark.start_ns, mark.end_ns)
        end
        found.merge(own)
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
          one = own(segment) { |change| segment.labels(change.label)[name] == value }
          all.merge(one) { |_, a, b| a + b }
        end
      end

      private

      def by_set(segment)
        @by_set ||= {}.compare_by_identity
        @by_set[segment] ||= segment.work_counters.group_by(&:label_id)
      end

      # Pitwall's counters, of the changes that the block lets through; {} where caches were not watched.
      def own(segment, &block)
        return {} unless segment.caches?

        counts = Caches::OWN.transform_values { 0 }
        segment.cache_changes.select(&block).each do |change|
          counter = Caches.counter_of(change.kind)
          counts[counter] += 1 if counter
        end
        counts
      end
    end
  end
end
