# frozen_string_literal: true

require "pitwall/analyse/allocations/allocations"
require "pitwall/analyse/tree/method_info"
require "pitwall/analyse/compare/profile_change"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # What two recordings of allocations differ by: objects and bytes, as a whole and by site.
    #
    # Where all objects were counted, the counts are exact: any difference is a real difference of these two runs. With several
    # runs of a side, a difference counts only if the ranges of the two sides do not overlap. Where only one object in n was
    # followed, the counts are estimates with an interval (Poisson), corrected for the number of sites (Bonferroni).
    class AllocationChange
      LEVEL = 0.95
      COUNTERS = { objects: :count, bytes: :bytes, retained: :retained, retained_bytes: :retained_bytes }.freeze
      private_constant :LEVEL, :COUNTERS

      # a, b: the figure of each side; the mean of its runs, if there are several. low, high: the interval of B − A. Both equal
      # B − A if the counts are exact.
      Delta = Struct.new(:a, :b, :low, :high) do
        #: () -> Numeric
        def change = b - a

        # Beyond noise.
        #: () -> bool
        def changed? = low.positive? || high.negative?

        #: () -> bool
        def exact? = low == high
      end

      # Objects of a class from a line of a method. path: "" is no Ruby code; lines: by side, nil where it has none.
      Row = Struct.new(:path, :lines, :method, :class_name, :objects, :bytes, :retained, :retained_bytes, keyword_init: true) do
        #: () -> bool
        def changed? = objects.changed? || bytes.changed? || retained?

        # Does it keep more or fewer? Words on the machine's stack may keep one or two that are garbage.
        #: () -> bool
        def retained? = retained.changed? && retained.change.abs > BY_CHANCE
      end
      BY_CHANCE = 2

      # @return [Array<Array<Allocations>>] by side, of each recording
      attr_reader :sides

      # @param sides [Array<Array<Array<Record::Segment>>>] by side the segments of each recording, which followed objects
      # @param bases [Array<String?>] by side: the folder that holds its code, which doesn't tell sites apart
      #: (Array[Array[Array[Record::Segment]]], ?bases: [String?, String?]) -> void
      def initialize(sides, bases: [nil, nil])
        @sides = sides.map { |recordings| recordings.map { |segments| Allocations.new(segments) } }
        @names = ProfileChange::Names.new(bases)
      end

      # Figures by name: objects, bytes, and retained and retained_bytes where all recordings have them.
      #: () -> Hash[Symbol, Delta]
      def totals
        @totals ||= begin
          counters = COUNTERS.slice(:objects, :bytes, *(:retained if runs.all?(&:retained?)), *(:retained_bytes if runs.all?(&:retained_bytes?)))
          counters.transform_values { |counter| delta(*@sides.map { |side| side.map { |run| run.total(counter) } }, doubt_of_total(counter)) }
        end
      end

      # Were all objects counted, in all recordings?
      #: () -> bool
      def exact? = runs.all? { |run| run.one_in == 1 }

      # Recordings by side.
      #: () -> [Integer, Integer]
      def counts = @sides.map(&:size)

      # All sites that either side has, the largest change first: of objects or bytes, by their part of the whole.
      #: () -> Array[Row]
      def rows = @rows ||= pairs.map { |pair| row(*pair) }.sort_by { |row| [-weight(row), row.path, row.lines.compact.first.to_i, row.class_name, row.method] }

      # Those that changed beyond noise.
      #: () -> Array[Row]
      def changed = rows.select(&:changed?)

      private

      def runs = @sides.flatten

      # Part of the larger side's objects or bytes that the change is.
      def weight(row)
        @wholes ||= totals.slice(:objects, :bytes, :retained).transform_values { |found| [found.a, found.b, 1].max }
        @wholes.map { |name, whole| row[name].change.abs.fdiv(whole) }.max
      end

      # By side the site's rows by run.
      def pairs
        @pairs ||= begin
          found = @sides.each_with_index.map { |side, at| sites(side, at) }
          found.flat_map(&:keys).uniq.flat_map { |key| lines(*found.map { |sites| sites.fetch(key, {}) }) }
        end
      end

      # Method and class → line → the site's row of each run.
      def sites(side, at)
        side.each_with_index.with_object({}) do |(run, number), sites|
          run.rows(by: %i[path line method class]).each do |row|
            next if row.special

            key = [@names.number(MethodInfo.new(row[:method], row.path, 0, 0), at), row[:class]]
            ((sites[key] ||= {})[row.line] ||= Array.new(side.size))[number] = row
          end
        end
      end

      # Code moves: lines that only one side has are the same ones in turn where both have as many.
      def lines(a, b)
        moved = [a.keys - b.keys, b.keys - a.keys].map(&:sort)
        same = (a.keys & b.keys).map { |line| [a[line], b[line]] }
        return same + moved[0].zip(moved[1]).map { |was, is| [a[was], b[is]] } if moved.map(&:size).uniq.one?

        same + moved[0].map { |line| [a[line], nil] } + moved[1].map { |line| [nil, b[line]] }
      end

      def row(*pair)
        rows = pair.zip(@sides).map { |found, side| found || Array.new(side.size) }
        one = rows.reverse.flatten.compact.first # where it is now, or was
        lines = rows.map { |side| side.compact.first&.line }
        counters = COUNTERS
        Row.new(path: one.path, lines: lines, method: one[:method], class_name: one[:class], **counters.transform_values { |counter| figures(rows, counter) })
      end

      def figures(rows, counter)
        delta(*rows.map { |side| side.map { |row| row ? row[counter] : 0 } }, doubt(rows, counter))
      end

      def delta(a, b, doubt)
        low, high = b.min - a.max, b.max - a.min
        Delta.new(mean(a), mean(b), low - doubt, high + doubt)
      end

      def mean(values) = values.uniq.one? ? values.first : values.sum.fdiv(values.size)

      # How far a difference of estimates may lie from the true one; 0 where all objects were counted.
      def doubt(rows, counter)
        return 0 if exact?

        found = rows.flatten.compact
        objects = found.sum(&:count)
        each = counter == :count ? 1 : found.sum(&counter).fdiv([objects, 1].max)
        variance = rows.zip(@sides).sum do |side, recordings|
          side.zip(recordings).sum { |row, run| run.one_in == 1 ? 0 : (run.one_in * each)**2 * [row&.followed.to_i, 1].max } / side.size**2
        end
        reach(variance, pairs.size)
      end

      # How many objects there were is known where one in so many was followed; what became of them is not.
      def doubt_of_total(counter)
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

      def reach(variance, tests) = Statistics.normal_quantile(1 - (1 - LEVEL) / (2 * [tests, 1].max)) * Math.sqrt(variance)
    end
  end
end
