# frozen_string_literal: true

require "pitwall/analyse/caches/work_counters"
require "pitwall/analyse/requests/requests"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Times of tests of minitest, RSpec and test-unit.
    class Tests
      # Name of the label whose value is the test's name.
      LABEL = "test"

      # name:        e.g. "OrderTest#test_total"
      # runs:        number of runs
      # duration_ns: sum over all runs
      # cpu_ns:      sum of the CPU time of the tests' own threads
      # objects:     objects that the process allocated during the runs; nil if other tests ran at the same time
      # gc_ns:       garbage collection of the process during the runs; nil if other tests ran at the same time
      # request:     number (Requests::Row) of the slowest run that was recorded by itself, or nil
      # counters:    increase of counters of the VM's caches, by name (WorkCounters), without those that are not known
      Row = Struct.new(:name, :runs, :duration_ns, :cpu_ns, :objects, :gc_ns, :request, :counters)

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
        @counters = WorkCounters.new(segments)
      end

      # Tests, slowest first. Tests with the same name are one row.
      # @param selection [Selection] only its process and labels matter
      #: (?Selection) -> Array[Row]
      def rows(selection = Selection.all)
        numbers = slowest_runs
        found = @segments.flat_map do |segment|
          next [] unless selection.segment?(segment)

          segment.tests.select { |test| selection.labels?(segment, test.label_id) }.map { |test| [segment, test] }
        end
        groups = found.group_by { |segment, test| segment.labels(test.label_id)[LABEL] }
        rows = groups.map { |name, group| row(name || "(without a name)", group, numbers) }
        rows.sort_by { |row| [-row.duration_ns, row.name] }
      end

      private

      def row(name, group, numbers)
        sum = ->(field) { group.sum { |_, test| test[field] } }
        alone = sum.(:count) == sum.(:counted)
        request = group.filter_map { |segment, test| numbers[[segment.object_id, test.label_id]] }.min
        process_sums = alone ? [sum.(:objects), sum.(:gc_ns)] : [nil, nil]
        sets = group.map { |segment, test| [segment, test.label_id] }
        Row.new(name, sum.(:count), sum.(:total_ns), sum.(:cpu_ns), *process_sums, request,
                @counters.of_test(sets, [LABEL, name], sum.(:count)))
      end

      # Numbers of requests by segment and label set. A request within a test has labels of its own, so is not counted.
      def slowest_runs
        Requests.new(@segments).rows.each_with_object({}) do |row, numbers|
          numbers[[row.segment.object_id, row.mark.label_id]] ||= row.number
        end
      end
    end
  end
end
