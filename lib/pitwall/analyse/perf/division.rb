# frozen_string_literal: true

module Pitwall
  module Analyse
    module Perf
      # Divides the rows of a recording among the samples that perf took of the same threads. A row says how long a
      # thread was at a stack. A sample of perf says which native functions were below that stack. The sums of wall
      # time, CPU time and captures of each row stay exactly what they were.
      #
      # - A sample belongs to the row in whose time it was taken: after the row's beginning, and not after its end.
      # - A row's CPU time is divided in proportion to the periods of its samples.
      # - The wall time of a running thread is divided in the same way. Of other rows only as much wall time as they
      #   have CPU time, because perf saw the thread on the CPU only. The rest stays at the row's own stack.
      # - A row without a sample is divided as the row that is nearest to it in time, among the rows of the same thread
      #   and stack in the same list. Without such a row it stays whole.
      class Division
        # The samples of a native thread, ascending by time. times: monotonic ns · periods: ns of CPU time · tails: what
        # was below the Ruby stack, any object; nil: nothing
        Samples = Struct.new(:times, :periods, :tails)

        # The state of a thread that runs (doc/record-format.md).
        RUNNING = 0
        # Indexes of a row: [thread, state, node, wall, cpu, captures, label set].
        THREAD = 0
        STATE = 1
        NODE = 2
        WALL = 3
        CPU = 4
        CAPTURES = 5
        private_constant :RUNNING, :THREAD, :STATE, :NODE, :WALL, :CPU, :CAPTURES

        # @return [Integer] samples that lay in a row's time
        attr_reader :placed

        # @param samples [Hash{Integer => Samples}] by thread id; several threads may have the same
        # @param starts [Hash{Integer => Integer}] by thread id: when its first row begins, in monotonic ns
        # @param unit_ns [Integer] ns in 1 of a row's wall time
        #: (samples: Hash[Integer, Samples], starts: Hash[Integer, Integer], unit_ns: Integer) -> void
        def initialize(samples:, starts:, unit_ns:)
          @samples = samples
          @ends = starts.dup
          @unit_ns = unit_ns
          @cursors = {}
          @placed = 0
        end

        # @param rows [Array<[thread, state, node, wall, cpu, captures, label set]>] the rows of a thread in the order
        #   of time; further lists continue the threads
        # @return [Array<[row, tail]>] rows with new sums; tail nil: at the row's own stack
        #: (Array[Array[Integer]]) -> Array[[Array[Integer], untyped]]
        def call(rows)
          shares = rows.map { |row| shares(row) }
          lend(rows, shares)
          rows.zip(shares).flat_map { |row, parts| parts ? divided(row, parts) : [[row, nil]] }
        end

        private

        # @return [Hash{Object => Integer}, nil] tail → sum of periods; nil: no sample
        def shares(row)
          thread = row[THREAD]
          from = @ends.fetch(thread, 0)
          to = @ends[thread] = from + row[WALL] * @unit_ns
          samples = @samples[thread] or return
          times = samples.times
          at = @cursors[thread] || times.bsearch_index { |time| time > from } || times.size
          found = nil
          while at < times.size && times[at] <= to
            (found ||= Hash.new(0))[samples.tails[at]] += samples.periods[at]
            @placed += 1
            at += 1
          end
          @cursors[thread] = at
          found
        end

        # Gives rows without a sample the shares of the nearest row of the same thread and stack.
        def lend(rows, shares)
          places = Hash.new { |known, key| known[key] = [] }
          rows.each_index { |at| places[[rows[at][THREAD], rows[at][NODE]]] << at if @samples[rows[at][THREAD]] }
          places.each_value do |same|
            known = same.select { |at| shares[at] }
            next if known.empty? || known.size == same.size

            lenders = shares.values_at(*known)
            same.each { |at| shares[at] ||= lenders[nearest(known, at)] }
          end
        end

        # The place in `known` of the number that is nearest to `at`.
        def nearest(known, at)
          after = known.bsearch_index { |other| other > at } || known.size
          return after if after.zero?
          return after - 1 if after == known.size

          known[after] - at < at - known[after - 1] ? after : after - 1
        end

        def divided(row, parts)
          total = parts.each_value.sum
          return [[row, nil]] unless total.positive?

          wall = row[STATE] == RUNNING ? row[WALL] : [row[WALL], row[CPU]].min
          rows = slices(row, parts, total, wall)
          rest = row[WALL] - wall
          rows << [changed(row, rest, 0), nil] if rest.positive?
          return [[row, nil]] if rows.empty?

          rows.first.first[CAPTURES] = row[CAPTURES]
          rows
        end

        # Every slice gets what is between two marks on the whole, so that the slices add up to it.
        def slices(row, parts, total, wall)
          sum = 0
          parts.filter_map do |tail, period|
            before = sum
            sum += period
            time, cpu = [wall, row[CPU]].map { |whole| whole * sum / total - whole * before / total }
            [changed(row, time, cpu), tail] if time.positive? || cpu.positive?
          end
        end

        def changed(row, wall, cpu)
          row.dup.tap do |copy|
            copy[WALL] = wall
            copy[CPU] = cpu
            copy[CAPTURES] = 0
          end
        end
      end
    end
  end
end
