# frozen_string_literal: true

require "pitwall/analyse/requests/requests"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # What each test of minitest, RSpec or test-unit took, the slowest first.
    class Tests
      # The label that holds a test's name.
      LABEL = "test"

      # name: "OrderTest#test_total"; runs: how often it ran; duration_ns, cpu_ns: of all runs, CPU of the test's own
      # thread. objects, gc_ns: of the process meanwhile; nil where other tests ran at the same time. request: the
      # number of its slowest run that is known one by one, or nil.
      Row = Struct.new(:name, :runs, :duration_ns, :cpu_ns, :objects, :gc_ns, :request)

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # Tests of the same name are one row.
      # @param selection [Selection] process and labels are heeded
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
        sum = ->(what) { group.sum { |_, test| test[what] } }
        known = sum.(:count) == sum.(:counted)
        request = group.filter_map { |segment, test| numbers[[segment.object_id, test.label_id]] }.min
        counted = known ? [sum.(:objects), sum.(:gc_ns)] : [nil, nil]
        Row.new(name, sum.(:count), sum.(:total_ns), sum.(:cpu_ns), *counted, request)
      end

      # By segment and label set: work within a test (a request to an application) has labels of its own.
      def slowest_runs
        Requests.new(@segments).rows.each_with_object({}) do |row, numbers|
          numbers[[row.segment.object_id, row.mark.label_id]] ||= row.number
        end
      end
    end
  end
end
