# frozen_string_literal: true

require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Requests and jobs that the program marked, and the samples taken while one of them ran.
    # A recording holds the slowest requests of each second one by one (marks).
    # Of all requests it holds the numbers and sums of times by label set (works).
    class Requests
      # Value of a label that Pitwall::Rack sets until the request's route is known.
      UNKNOWN = "(unknown)"
      private_constant :UNKNOWN

      # number: from 1, slowest first. start_ns: since the first process started.
      Row = Struct.new(:number, :segment, :mark, :start_ns, keyword_init: true) do
        #: () -> Integer
        def duration_ns = mark.duration_ns
        #: () -> Hash[String, String]
        def labels = segment.labels(mark.label_id)
        #: () -> Record::ThreadInfo
        def thread = segment.thread(mark.thread_id)
        #: () -> Integer?
        def pid = segment.header.pid
        # All labels as a text: "route=orders#show, tenant=acme"
        #: () -> String
        def name = labels.map { |pair| pair.join("=") }.join(", ")
      end

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # Requests that were recorded one by one. Their numbers do not depend on the selection.
      # @param selection [Selection] only its process, thread and labels matter
      # @return [Array<Row>] slowest first
      #: (?Selection) -> Array[Row]
      def rows(selection = Selection.all)
        all.select do |row|
          segment, mark = row.segment, row.mark
          selection.segment?(segment) && selection.labels?(segment, mark.label_id) &&
            (selection.thread.nil? || selection.thread?(segment, mark.thread_id))
        end
      end

      # Number of all requests and jobs that ended, also of those that were not recorded one by one.
      # @param selection [Selection] only its process and labels matter
      # @return [Integer, nil] nil for the selection of a thread, because requests are not counted by thread
      #: (?Selection) -> Integer?
      def count(selection = Selection.all)
        return if selection.thread

        @segments.sum do |segment|
          works = selection.segment?(segment) ? segment.works : []
          works.sum { |work| selection.labels?(segment, work.label_id) ? work.count : 0 }
        end
      end

      # The request with this number, from 1.
      # @raise [UsageError] when there is no such number
      #: (Integer) -> Row
      def row(number)
        return all[number - 1] if number.between?(1, all.size)

        range = all.empty? ? "none" : "1 to #{all.size}, see --view requests"
        raise UsageError, "no request #{number}: the recording has #{range}"
      end

      # A segment with the samples of one request only: rows of its thread and labels between its start and end.
      # A row that began earlier counts from the request's start. Time after the last sample is unknown and missing.
      # All tallies have the request's label set.
      # Rows (#each_rows) also have other work of the thread in this time, under its own labels, because a thread's rows
      # must have no gaps.
      # @raise [BadRecording] when the file has changed since it was read
      #: (Row) -> Record::Segment
      def narrowed(row)
        segment, mark = row.segment, row.mark
        rows = rows_of(segment, mark)
        tallies = {}
        rows.each do |_, state, node, wall, cpu, captures, label|
          next if label != mark.label_id || node == segment.gap

          tally = tallies[state] ||= Record::Tally.new(mark.thread_id, state, segment.parents.size, label)
          tally.add(node, wall, cpu, captures)
        end
        info = segment.thread(mark.thread_id).dup.tap { |copy| copy.start_ns = [copy.start_ns, mark.start_ns].max }
        within = segment.collections.select { |run| run.end_ns > mark.start_ns && run.start_ns < mark.end_ns }
        segment.with(
          unfiltered: nil, tallies: tallies.values, calls: Record::Calls.new, sites: [], allocation_totals: nil,
          marks: [mark], works: [], tests: [], work_counters: [], **queries(segment, mark), collections: within,
          threads: segment.threads.merge(mark.thread_id => info), open_rows: [],
          row_source: ->(&block) { block.call(rows) }, row_count: rows.size
        )
      end

      private

      def all
        @all ||= begin
          origin = @segments.filter_map { |segment| segment.header.started_at_ns }.min
          rows = @segments.flat_map do |segment|
            shift = (segment.header.started_at_ns || origin || 0) - (origin || 0)
            segment.marks.map { |mark| Row.new(segment: segment, mark: mark, start_ns: shift + mark.start_ns) }
          end
          rows.sort_by! { |row| [-row.duration_ns, row.start_ns, row.mark.thread_id] }
          rows.each_with_index { |row, at| row.number = at + 1 }
        end
      end

      # The request's database queries, in the fields of a segment.
      def queries(segment, mark)
        key = [mark.thread_id, mark.end_ns]
        parts = segment.query_parts.fetch(key, [])
        sums = parts.map do |part|
          Record::QuerySum.new(mark.label_id, part.query_id, 1, part.count, part.ns, part.count)
        end
        { query_sums: sums, query_parts: { key => parts } }
      end

      # The rows of one request. A row has the columns of Record::Rows#each.
      Cut = Struct.new(:list) do
        def each(&block) = list.each { |row| block.call(*row) }
        def size = list.size
        # As Record::Rows#moved.
        def moved(targets) = Cut.new(list.map { |row| row.dup.tap { |copy| copy[2] = targets[row[2]] } })
      end
      private_constant :Cut

      # Rows of the mark's thread, cut to the mark's time. A thread's rows have no gaps, so their sum is its clock.
      def rows_of(segment, mark)
        unit = segment.unit_ns
        from = mark.start_ns / unit
        to = mark.end_ns / unit
        labels = segment.labels(mark.label_id)
        now = segment.thread(mark.thread_id).start_ns / unit
        cut = []
        part = lambda do |state, node, wall, cpu, captures, label|
          began = now
          now += wall
          next if now <= from || now > to

          inside = now - [began, from].max
          row_label = same_request?(segment.labels(label), labels) ? mark.label_id : label
          cut << [mark.thread_id, state, node, inside, inside == wall ? cpu : cpu * inside / wall, captures, row_label]
        end
        segment.each_rows do |rows|
          rows.each do |thread, state, node, wall, cpu, captures, label|
            part.call(state, node, wall, cpu, captures, label) if thread == mark.thread_id
          end
        end
        segment.open_rows.each do |thread, state, node, wall, cpu, label|
          part.call(state, node, wall, cpu, 0, label.to_i) if thread == mark.thread_id
        end
        Cut.new(cut)
      end

      # Whether a row's labels are the request's. Other requests run in the same time on a thread with several fibers.
      # A row's label may still be UNKNOWN.
      def same_request?(labels, of_mark) = of_mark.all? { |name, value| [value, UNKNOWN].include?(labels[name]) }
    end
  end
end
