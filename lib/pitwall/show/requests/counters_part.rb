# frozen_string_literal: true

require "pitwall/show/requests/counter_columns"

module Pitwall
  module Show
    # Counters of the VM's caches in requests, tests and works by label, in a page.
    class CountersPart
      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @counters = Analyse::WorkCounters.new(segments)
        @marks = Analyse::Requests.new(segments).rows.to_h { |row| [row.mark, row] }.compare_by_identity
        @names = @counters.names
      end

      # What columns have, nil where nothing was counted.
      #: () -> Hash[String, untyped]?
      def object
        return if @names.empty?

        columns = @names.map do |name|
          { "name" => name, "head" => CounterColumns.head(name), "title" => CachesWords.counter(name),
            "process" => Record::STAT_COUNTERS.include?(name) }
        end
        { "columns" => columns, "missing" => @counters.not_counted }
      end

      # Increases in the order of the columns; nil where a counter is not known.
      #: (Hash[String, Integer]) -> Array[Integer?]
      def values(increases) = increases.values_at(*@names)

      # Of a process: for each column the increase of each mark, plus 1, 0 where it is not known; and the sums by label
      # set.
      # @param data [PageData] takes columns of numbers
      #: (Record::Segment, PageData) -> Hash[String, untyped]?
      def of_process(segment, data)
        return if @names.empty?

        increases = segment.marks.map { |mark| values(@counters.of_request(@marks.fetch(mark))) }
        marks = @names.each_index.map { |at| data.column(increases.map { |all| all[at] ? all[at] + 1 : 0 }) }
        sums = @counters.of_labels(segment).flat_map do |set, found|
          @names.each_with_index.filter_map do |name, at|
            sum = found[name]
            [set, at, sum.works, sum.increase] if sum && (sum.works.positive? || sum.increase.positive?)
          end
        end
        { "marks" => marks, "sums" => %w[set column works increase].zip(columns(sums, data)).to_h }
      end

      private

      def columns(sums, data) = (0..3).map { |at| data.column(sums.map { |row| row[at] }) }
    end
  end
end
