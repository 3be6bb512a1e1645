# frozen_string_literal: true

require "pitwall/record/chunks/samples"

module Pitwall
  module Analyse
    class TimeRange
      # The rows of one segment that lie in a range. A thread's rows have no gaps, so the sum of their wall times is the
      # thread's clock. Chunks that lie wholly inside are passed on as they are, which most chunks do.
      class Cut
        # @param from [Integer] ns since the segment's start
        # @param to [Integer, Float] the same; infinity: to the end
        #: (Record::Segment, Integer, Integer | Float) -> void
        def initialize(segment, from, to)
          @segment = segment
          unit = segment.unit_ns
          @from = from / unit
          @to = to.is_a?(Integer) ? to / unit : to
        end

        # Yields the rows in the range, chunk by chunk.
        #: () { (Record::Rows) -> void } -> void
        def each(&block)
          clocks = start
          @segment.each_rows { |rows| pass(rows, clocks, &block) }
        end

        # @return [Array(Array<Record::Tally>, Array, Integer)] sums of the rows, the open rows, and the number of rows
        #: () -> [Array[Record::Tally], Array[untyped], Integer]
        def sums
          nodes = @segment.parents.size
          labelled = Hash.new { |all, label| all[label] = {} }
          tally = lambda do |thread, state, label|
            labelled[label][thread << 8 | state] ||= Record::Tally.new(thread, state, nodes, label)
          end
          clocks = start
          count = 0
          @segment.each_rows do |rows|
            pass(rows, clocks) do |kept|
              kept.add_to(labelled, &tally)
              count += kept.size
            end
          end
          open_rows = open_rows(clocks)
          open_rows.each do |thread, state, node, wall, cpu, label|
            tally.call(thread, state, label.to_i).add(node, wall, cpu, 0)
          end
          [labelled.each_value.flat_map(&:values), open_rows, count]
        end

        private

        def start = Hash.new { |known, id| known[id] = @segment.thread(id).start_ns / @segment.unit_ns }

        # Yields what lies in the range of a chunk's rows, if anything does.
        def pass(rows, clocks)
          before = clocks.dup
          inside = outside = true
          at = 0
          wall = rows.wall
          rows.thread_runs.each_slice(2) do |thread, count|
            began = clocks[thread]
            ended = clocks[thread] = began + wall[at, count].sum
            at += count
            inside &&= began >= @from && ended < @to
            outside &&= ended < @from || began >= @to
          end
          return yield(rows) if inside
          return if outside

          kept = rows_within(rows, before)
          yield Record::Rows.of(kept) if kept.any?
        end

        def rows_within(rows, clocks)
          kept = []
          rows.each do |thread, state, node, wall, cpu, captures, label|
            began = clocks[thread]
            clocks[thread] += wall
            part = part(began, wall, cpu, captures) or next
            kept << [thread, state, node, *part, label]
          end
          kept
        end

        def open_rows(clocks)
          @segment.open_rows.filter_map do |thread, state, node, wall, cpu, label|
            part = part(clocks[thread], wall, cpu, 0) or next
            clocks[thread] += wall
            [thread, state, node, part[0], part[1], label]
          end
        end

        # Wall, CPU and captures of the part of a row in the range; nil where none of it is.
        # The sample was taken at the row's end, so rounding down leaves a capture to the part with the end.
        def part(began, wall, cpu, captures)
          if wall.zero?
            return began >= @from && began < @to ? [0, cpu, captures] : nil
          end

          first = [@from - began, 0].max
          last = [@to - began, wall].min
          return if first >= last
          return [wall, cpu, captures] if first.zero? && last == wall

          [last - first, cpu * last / wall - cpu * first / wall, captures * last / wall - captures * first / wall]
        end
      end
      private_constant :Cut
    end
  end
end
