# frozen_string_literal: true

require "pitwall/analyse/caches/work_counters"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Time by the values of one label.
    # Work under a label counts on every thread, as with --label. It also counts on a thread that was idle most of the
    # time, because such a thread may have served a request.
    # Work without any label counts only if the selection has its thread.
    class Labels
      # value:      the label's value; nil for samples without the label
      # wall, cpu:  ns
      # requests:   number of requests and jobs that ended (Pitwall.request)
      # request_ns: sum of the durations of these requests
      # counters:   counters of the VM's caches over the requests and jobs: name → WorkCounters::Sum; {} if nothing was
      #             counted
      # requests, request_ns and counters are nil for the selection of a thread or a state: requests are not counted by
      # these.
      Row = Struct.new(:value, :wall, :cpu, :captures, :requests, :request_ns, :counters)

      # @return [Array<String>] names of labels, the one with most wall time first
      attr_reader :names
      # @return [String, nil] name of the label whose values are the rows; nil if there are no labels
      attr_reader :name

      # @param name [String, nil] name of the label; nil: the label with most wall time
      # @raise [UsageError] when the recording has no label of that name
      #: (Array[Record::Segment], ?Selection, ?name: String?) -> void
      def initialize(segments, selection = Selection.all, name: nil)
        @count_requests = selection.thread.nil? && selection.state.nil?
        @times = Hash.new { |times, labels| times[labels] = [0, 0, 0, 0, 0] }
        @counters = Hash.new { |counters, labels| counters[labels] = {} }
        @work_counters = WorkCounters.new(segments)
        segments.each { |segment| add(segment, selection) if selection.segment?(segment) }
        walls = @times.each_with_object(Hash.new(0)) do |(labels, sums), all|
          labels.each_key { |key| all[key] += sums[0] }
        end
        @names = walls.sort_by { |key, wall| [-wall, key] }.map(&:first)
        check(name)

        @name = name || @names.first
      end

      # One row for each value, most wall time first. Samples without the label are last.
      #: () -> Array[Row]
      def rows
        rows = @times.group_by { |labels, _| labels[@name] }.map do |value, group|
          wall, cpu, captures, *requests = group.map(&:last).transpose.map(&:sum)
          counters = sum_counters(group.map(&:first)) if @count_requests
          Row.new(value, wall, cpu, captures, *(@count_requests ? requests : [nil, nil]), counters)
        end
        rows.sort_by { |row| [row.value ? 0 : 1, -row.wall, row.value.to_s] }
      end

      # Names of counters of the VM's caches, in the order of the vocabulary.
      #: () -> Array[String]
      def counters = @work_counters.names

      # Wall time of all samples with the label, in ns. Shares of rows refer to this time.
      #: () -> Integer
      def labelled = rows.sum { |row| row.value ? row.wall : 0 }

      private

      def check(name)
        return if name.nil? || @names.include?(name)

        raise UsageError, "no label #{name} in the recording; it has #{@names.empty? ? "none" : @names.join(", ")}"
      end

      def add(segment, selection)
        all_threads = selection.dup.tap { |copy| copy.without = nil }
        segment.tallies.each do |tally|
          labels = segment.labels(tally.label_id)
          next unless (labels.empty? ? selection : all_threads).tally?(segment, tally)

          sums = @times[labels]
          unit = segment.unit_ns
          tally.each do |_, wall, cpu, captures|
            sums[0] += wall * unit
            sums[1] += cpu * unit
            sums[2] += captures
          end
        end
        add_requests(segment, selection) if @count_requests
      end

      def add_requests(segment, selection)
        segment.works.each do |work|
          next unless selection.labels?(segment, work.label_id)

          sums = @times[segment.labels(work.label_id)]
          sums[3] += work.count
          sums[4] += work.total_ns
        end
        @work_counters.of_labels(segment).each do |set, counters|
          next unless selection.labels?(segment, set)

          add_counters(@counters[segment.labels(set)], counters)
        end
      end

      def sum_counters(label_sets)
        label_sets.each_with_object({}) { |labels, sums| add_counters(sums, @counters.fetch(labels, {})) }
      end

      def add_counters(sums, counters)
        counters.each do |name, one|
          sum = sums[name] ||= WorkCounters::Sum.new(0, 0)
          sum.works += one.works
          sum.increase += one.increase
        end
      end
    end
  end
end
