# frozen_string_literal: true

require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Pieces of work (requests, jobs) that the program marked: the slowest, and what was sampled while one of them ran.
    class Requests
      # What Pitwall::Rack says of a request before it is known where it leads.
      UNKNOWN = "(unknown)"
      private_constant :UNKNOWN

      # number: from 1, the slowest first; start_ns: since the first process began.
      Row = Struct.new(:number, :segment, :mark, :start_ns, keyword_init: true) do
        #: () -> Integer
        def duration_ns = mark.duration_ns
        #: () -> Hash[String, String]
        def labels = segment.labels(mark.label_id)
        #: () -> Record::ThreadInfo
        def thread = segment.thread(mark.thread_id)
        #: () -> Integer?
        def pid = segment.header.pid
        # "route=orders#show, tenant=acme"
        #: () -> String
        def name = labels.map { |pair| pair.join("=") }.join(", ")
      end

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # Numbers are of all there are, whatever is left out.
      # @param selection [Selection] process, thread and labels are heeded
      # @return [Array<Row>] the slowest first
      #: (?Selection) -> Array[Row]
      def rows(selection = Selection.all)
        all.select do |row|
          selection.segment?(row.segment) && selection.labels?(row.segment, row.mark.label_id) && (selection.thread.nil? || selection.thread?(row.segment, row.mark.thread_id))
        end
      end

      # All work that ended, told one by one or not.
      # @param selection [Selection] process and labels are heeded
      # @return [Integer, nil] nil where a thread is asked for: work is not counted by thread
      #: (?Selection) -> Integer?
      def count(selection = Selection.all)
        return if selection.thread

        @segments.sum do |segment|
          works = selection.segment?(segment) ? segment.works : []
          works.sum { |work| selection.labels?(segment, work.label_id) ? work.count : 0 }
        end
      end

      # @raise [UsageError] no such number
      #: (Integer) -> Row
      def row(number)
        return all[number - 1] if number.between?(1, all.size)

        raise UsageError, "no request #{number}: the recording has #{all.empty? ? "none" : "1 to #{all.size}, see --view requests"}"
      end

      # A segment with what was sampled of one of them, and nothing else: rows of its thread and labels in its time, all under its labels. A row
      # that began before is counted from there; what comes after the last look is not known, and missing. Its rows (#each_rows) hold the
      # thread's other work of that time too, under the labels of that, which the labels tell apart: its clock goes on.
      # @raise [BadRecording] when the file was changed since it was read
      #: (Row) -> Record::Segment
      def narrowed(row)
        segment, mark = row.segment, row.mark
        rows = rows_of(segment, mark)
        tallies = {}
        rows.each do |_, state, node, wall, cpu, captures, label|
          next unless label == mark.label_id

          tally = tallies[state] ||= Record::Tally.new(mark.thread_id, state, segment.parents.size, label)
          tally.add(node, wall, cpu, captures)
        end
        info = segment.thread(mark.thread_id).dup.tap { |copy| copy.start_ns = [copy.start_ns, mark.start_ns].max }
        within = segment.collections.select { |run| run.end_ns > mark.start_ns && run.start_ns < mark.end_ns }
        segment.with(tallies: tallies.values, calls: Record::Calls.new, sites: [], allocation_totals: nil, marks: [mark], works: [], tests: [], **queries(segment, mark), collections: within,
                     threads: segment.threads.merge(mark.thread_id => info), open_rows: [], row_source: ->(&block) { block.call(rows) }, row_count: rows.size)
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

      # What it asked databases, as if there were nothing else.
      def queries(segment, mark)
        key = [mark.thread_id, mark.end_ns]
        parts = segment.query_parts.fetch(key, [])
        sums = parts.map { |part| Record::QuerySum.new(mark.label_id, part.query_id, 1, part.count, part.ns, part.count) }
        { query_sums: sums, query_parts: { key => parts } }
      end

      # Rows that were cut out, in the columns' order of Record::Rows#each.
      Cut = Struct.new(:list) do
        def each(&block) = list.each { |row| block.call(*row) }
        def size = list.size
        # As Record::Rows#moved.
        def moved(targets) = Cut.new(list.map { |row| row.dup.tap { |copy| copy[2] = targets[row[2]] } })
      end
      private_constant :Cut

      # A thread's rows leave no gap: their sum is its clock.
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
          cut << [mark.thread_id, state, node, inside, inside == wall ? cpu : cpu * inside / wall, captures, same_work?(segment.labels(label), labels) ? mark.label_id : label]
        end
        segment.each_rows { |rows| rows.each { |thread, state, node, wall, cpu, captures, label| part.call(state, node, wall, cpu, captures, label) if thread == mark.thread_id } }
        segment.open_rows.each { |thread, state, node, wall, cpu, label| part.call(state, node, wall, cpu, 0, label.to_i) if thread == mark.thread_id }
        Cut.new(cut)
      end

      # On a thread whose fibers take turns, other requests run in the same time.
      def same_work?(labels, of_mark) = of_mark.all? { |name, value| [value, UNKNOWN].include?(labels[name]) }
    end
  end
end
