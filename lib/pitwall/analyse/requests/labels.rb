# frozen_string_literal: true

require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Time by the values of one label. What ran under a label counts on every thread, as it does under --label: a thread
    # that waited for work nearly all the time may have served a request. What ran without any label counts where the
    # selection has its thread.
    class Labels
      # value: nil for what ran without that label. wall and cpu in ns; requests: pieces of work that ended
      # (Pitwall.request), request_ns: what they took together. Both are nil where a thread or a state was asked for,
      # which requests are not counted by.
      Row = Struct.new(:value, :wall, :cpu, :captures, :requests, :request_ns)

      # @return [Array<String>] names of labels, those of the most time first
      attr_reader :names
      # @return [String, nil] the one whose values are rows; nil where there are no labels
      attr_reader :name

      # @param name [String, nil] nil: the one that most time has
      # @raise [UsageError] when nothing has a label of that name
      #: (Array[Record::Segment], ?Selection, ?name: String?) -> void
      def initialize(segments, selection = Selection.all, name: nil)
        @counted = selection.thread.nil? && selection.state.nil?
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
          wall, cpu, captures, *requests = group.map(&:last).transpose.map(&:sum)
          Row.new(value, wall, cpu, captures, *(requests if @counted))
        end
        rows.sort_by { |row| [row.value ? 0 : 1, -row.wall, row.value.to_s] }
      end

      # Wall time of all rows that have the label, in ns: what their shares are of.
      #: () -> Integer
      def labelled = rows.sum { |row| row.value ? row.wall : 0 }

      private

      def add(segment, selection)
        every = selection.dup.tap { |copy| copy.without = nil }
        segment.tallies.each do |tally|
          labels = segment.labels(tally.label_id)
          next unless (labels.empty? ? selection : every).tally?(segment, tally)

          sums = @times[labels]
          unit = segment.unit_ns
          tally.each do |_, wall, cpu, captures|
            sums[0] += wall * unit
            sums[1] += cpu * unit
            sums[2] += captures
          end
        end
        count(segment, selection) if @counted
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
