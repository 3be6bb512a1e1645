# frozen_string_literal: true

require "pitwall/analyse/selection"

module Pitwall
  module Analyse
    # Time by the values of one label.
    class Labels
      # value: nil for what ran without that label. wall and cpu in ns; requests: pieces of work that ended (Pitwall.request), request_ns: what they
      # took together.
      Row = Struct.new(:value, :wall, :cpu, :captures, :requests, :request_ns)

      # @return [Array<String>] names of labels, those of the most time first
      attr_reader :names
      # @return [String, nil] the one whose values are rows; nil where there are no labels
      attr_reader :name

      # @param name [String, nil] nil: the one that most time has
      # @raise [UsageError] when nothing has a label of that name
      #: (Array[Record::Segment], ?Selection, ?name: String?) -> void
      def initialize(segments, selection = Selection.all, name: nil)
        @times = Hash.new { |times, labels| times[labels] = [0, 0, 0, 0, 0] }
        segments.each { |segment| add(segment, selection) if selection.segment?(segment) }
        @names = @times.each_with_object(Hash.new(0)) { |(labels, sums), walls| labels.each_key { |key| walls[key] += sums[0] } }
                       .sort_by { |key, wall| [-wall, key] }.map(&:first)
        raise UsageError, "no label #{name} in the recording; it has #{@names.empty? ? "none" : @names.join(", ")}" unless name.nil? || @names.include?(name)

        @name = name || @names.first
      end

      # The most wall time first, what has no such label last.
      #: () -> Array[Row]
      def rows
        rows = @times.group_by { |labels, _| labels[@name] }.map do |value, group|
          Row.new(value, *group.map(&:last).transpose.map(&:sum))
        end
        rows.sort_by { |row| [row.value ? 0 : 1, -row.wall, row.value.to_s] }
      end

      private

      def add(segment, selection)
        segment.tallies.each do |tally|
          next unless selection.tally?(segment, tally)

          sums = @times[segment.labels(tally.label_id)]
          unit = segment.unit_ns
          tally.each do |_, wall, cpu, captures|
            sums[0] += wall * unit
            sums[1] += cpu * unit
            sums[2] += captures
          end
        end
        count(segment, selection) if selection.thread.nil? && selection.state.nil?
      end

      def count(segment, selection)
        segment.works.each do |work|
          next unless selection.labels?(segment, work.label_id)

          sums = @times[segment.labels(work.label_id)]
          sums[3] += work.count
          sums[4] += work.total_ns
        end
      end
    end
  end
end
