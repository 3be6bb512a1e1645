# frozen_string_literal: true

require "pitwall/analyse/allocations/allocations"
require "pitwall/analyse/recording/method_info"
require "pitwall/analyse/compare/profile_change"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Difference between two recordings of allocations: objects and bytes, in total and by site.
    #
    # If all objects were counted, counts are exact, and any difference is a real difference between these runs.
    # With several runs on a side, a difference counts only if the ranges of the two sides do not overlap.
    # If only one object in n was followed, counts are estimates with an interval (Poisson).
    # The level of the intervals is corrected for the number of sites (Bonferroni).
    class AllocationChange
      LEVEL = 0.95
      COUNTERS = { objects: :count, bytes: :bytes, retained: :retained, retained_bytes: :retained_bytes }.freeze
      private_constant :LEVEL, :COUNTERS

      # a, b: the figure of each side; the mean of its runs if there are several. low, high: the interval of B − A. Both
      # are B − A if the counts are exact.
      Delta = Struct.new(:a, :b, :low, :high) do
        # B − A.
        #: () -> Numeric
        def change = b - a

        # Whether the interval excludes 0.
        #: () -> bool
        def changed? = low.positive? || high.negative?

        # Whether the counts are exact.
        #: () -> bool
        def exact? = low == high
      end

      # Objects of one class from one line of a method. path: "" if it is no Ruby code. lines: the line on each side;
      # nil if the side has none. objects, bytes, retained, retained_bytes: Deltas.
      Row = Struct.new(:path, :lines, :method, :class_name, :objects, :bytes, :retained, :retained_bytes,
                       keyword_init: true) do
        # Whether any figure changed.
        #: () -> bool
        def changed? = objects.changed? || bytes.changed? || retained?

        # Whether more or fewer objects are retained. A change of up to BY_CHANCE does not count, because values on the
        # machine's stack may keep one or two garbage objects.
        #: () -> bool
        def retained? = retained.changed? && retained.change.abs > BY_CHANCE
      end
      BY_CHANCE = 2

      # @return [Array<Array<Allocations>>] by side: its recordings
      attr_reader :sides

      # @param sides [Array<Array<Array<Record::Segment>>>] by side and recording: segments that followed objects
      # @param bases [Array<String?>] by side: the folder of its code. Paths are compared relative to it
      #: (Array[Array[Array[Record::Segment]]], ?bases: [String?, String?]) -> void
      def initialize(sides, bases: [nil, nil])
        @sides = sides.map { |recordings| recordings.map { |segments| Allocations.new(segments) } }
        @names = ProfileChange::Names.new(bases)
      end

      # Totals by name: objects, bytes; also retained and retained_bytes if all recordings have them.
      #: () -> Hash[Symbol, Delta]
      def totals
        @totals ||= begin
          names = %i[objects bytes]
          names << :retained if runs.all?(&:retained?)
          names << :retained_bytes if runs.all?(&:retained_bytes?)
          COUNTERS.slice(*names).transform_values do |counter|
            delta(*@sides.map { |side| side.map { |run| run.total(counter) } }, error_of_total(counter))
          end
        end
      end

      # Whether all objects were counted in all recordings.
      #: () -> bool
      def exact? = runs.all? { |run| run.one_in == 1 }

      # Number of recordings on each side.
      #: () -> [Integer, Integer]
      def counts = @sides.map(&:size)

      # Sites of either side, largest change first. The size of a change is its share of the total objects or bytes.
      #: () -> Array[Row]
      def rows
        @rows ||= pairs.map { |pair| row(*pair) }.sort_by do |row|
          [-size_of_change(row), row.path, row.lines.compact.first.to_i, row.class_name, row.method]
        end
      end

      # Sites that changed.
      #: () -> Array[Row]
      def changed = rows.select(&:changed?)

      private

      def runs = @sides.flatten

      # The largest change of a row's figures, as a share of the larger side's total.
      def size_of_change(row)
        @wholes ||= totals.slice(:objects, :bytes, :retained).transform_values { |found| [found.a, found.b, 1].max }
        @wholes.map { |name, whole| row[name].change.abs.fdiv(whole) }.max
      end

      # By site: for each side its rows by run.
      def pairs
        @pairs ||= begin
          found = @sides.each_with_index.map { |side, at| sites(side, at) }
          found.flat_map(&:keys).uniq.flat_map { |key| lines(*found.map { |sites| sites.fetch(key, {}) }) }
        end
      end

      # One side's sites: method and class → line → the row of each run.
      def sites(side, at)
        side.each_with_index.with_object({}) do |(run, number), sites|
          run.rows(by: %i[path line method class]).each do |row|
            next if row.special

            key = [@names.number(MethodInfo.new(row[:method], row.path, 0, 0), at), row[:class]]
            ((sites[key] ||= {})[row.line] ||= Array.new(side.size))[number] = row
          end
        end
      end

      # Matches lines of one method, because code moves between versions. Lines that only one side has are matched in
      # their order, if both sides have equally many.
      def lines(a, b)
        moved = [a.keys - b.keys, b.keys - a.keys].map(&:sort)
        same = (a.keys & b.keys).map { |line| [a[line], b[line]] }
        return same + moved[0].zip(moved[1]).map { |old, new| [a[old], b[new]] } if moved.map(&:size).uniq.one?

        same + moved[0].map { |line| [a[line], nil] } + moved[1].map { |line| [nil, b[line]] }
      end

      def row(*pair)
        rows = pair.zip(@sides).map { |found, side| found || Array.new(side.size) }
        one = rows.reverse.flatten.compact.first # the second side's row if there is one
        lines = rows.map { |side| side.compact.first&.line }
        Row.new(path: one.path, lines: lines, method: one[:method], class_name: one[:class],
                **COUNTERS.transform_values { |counter| figures(rows, counter) })
      end

      def figures(rows, counter)
        delta(*rows.map { |side| side.map { |row| row ? row[counter] : 0 } }, error(rows, counter))
      end

      def delta(a, b, error)
        low, high = b.min - a.max, b.max - a.min
        Delta.new(mean(a), mean(b), low - error, high + error)
      end

      def mean(values) = values.uniq.one? ? values.first : values.sum.fdiv(values.size)

      # Half the width of the interval of a site's difference; 0 if all objects were counted.
      def error(rows, counter)
        return 0 if exact?

        found = rows.flatten.compact
        objects = found.sum(&:count)
        each = counter == :count ? 1 : found.sum(&counter).fdiv([objects, 1].max)
        variance = rows.zip(@sides).sum do |side, recordings|
          variances = side.zip(recordings).map do |row, run|
            run.one_in == 1 ? 0 : (run.one_in * each)**2 * [row&.followed.to_i, 1].max
          end
          variances.sum / side.size**2
        end
        reach(variance, pairs.size)
      end

      # Half the width of the interval of a total's difference. The number of objects is exact even if only some were
      # followed. Bytes and retained objects are estimates.
      def error_of_total(counter)
        return 0 if exact? || counter == :count

        of = counter == :bytes ? :count : :retained
        variance = @sides.sum do |side|
          side.sum do |run|
            objects = run.total(of)
            run.one_in == 1 || objects.zero? ? 0 : run.one_in * run.total(counter)**2 / objects
          end / side.size**2
        end
        reach(variance, 1)
      end

      def reach(variance, tests)
        Statistics.normal_quantile(1 - (1 - LEVEL) / (2 * [tests, 1].max)) * Math.sqrt(variance)
      end
    end
  end
end
