# frozen_string_literal: true

require "pitwall/show/caches/words"

module Pitwall
  module Show
    # Changes that empty caches, in a page: rows as in the text, and marks on a time line with their stacks.
    class CachesPart
      # So many stretches of time have marks of their own, at most MOST each: a mark stands for all changes of its row
      # within the stretch.
      STRETCHES = 2000
      MOST = 5
      FRAMES = 60 # of a stack, at most
      private_constant :STRETCHES, :MOST, :FRAMES

      #: (Analyse::Caches) -> void
      def initialize(caches)
        @caches = caches
      end

      # The object for the page's data.
      # @param origin [Integer] Unix time that moments count from, ns
      # @param processes [Hash{Record::Segment => Integer}] their numbers
      #: (origin: Integer, processes: Hash[Record::Segment, Integer]) -> Hash[String, untyped]
      def object(origin:, processes:)
        @stacks = {}
        { "counters" => counters, "losses" => CachesWords.losses(@caches), "notes" => CachesWords.notes(@caches),
          "order" => CachesWords.order(@caches), "advice" => CachesWords.advice(kinds).values, "rows" => rows,
          "sampled" => @caches.cost.sampled?, "counts_misses" => @caches.cost.misses?,
          "marks" => marks(origin, processes), "stacks" => @stacks.keys }
      end

      private

      def kinds = @caches.changes.map { |row, _| row.kind }

      def counters
        @caches.counters.reject { |_, count| count.zero? }.map do |name, count|
          { "count" => count, "text" => CachesWords.counter(name), "name" => (name unless CachesWords.own?(name)) }
        end
      end

      def rows
        @caches.changes.map do |row, counts|
          figures = @caches.figures(row, counts)
          vm = counts.reject { |name, _| CachesWords.own?(name) }.map { |name, count| "#{name} +#{count}" }
          { "count" => row.count, "kind" => CachesWords.kind(row.kind), "group" => CachesWords.group(row.kind).to_s,
            "subject" => row.subject, "path" => row.path, "line" => row.line, "counters" => vm.join(", "),
            "misses" => figures.misses, "time_ns" => figures.time_ns, "doubt" => figures.doubt,
            "stack" => stack(@caches.stack(row)) }
        end
      end

      # [ns, row, how many, stack], in the order of time.
      def marks(origin, processes)
        numbers = @caches.changes.each_with_index.to_h { |(row, _), at| [key(row), at] }
        found = @caches.moments.filter_map do |row|
          at = row.segment.header.started_at_ns.to_i - origin + row.first_ns
          [at, numbers.fetch(key(row)), row] if processes.key?(row.segment)
        end
        width = [found.map(&:first).max.to_i.fdiv(STRETCHES), 1.0].max
        by_stretch = found.group_by { |at, _, _| (at / width).floor }
        by_stretch.sort.flat_map { |_, of_stretch| joined(of_stretch) }
      end

      def joined(found)
        found.group_by { |_, number, _| number }.values.first(MOST).map do |same|
          at, number, row = same.min_by(&:first)
          [at, number, same.sum { |_, _, one| one.count }, stack(@caches.stack(row))]
        end
      end

      def key(row) = [row.kind, row.path, row.line, row.subject]

      # Its number in the list of stacks.
      def stack(frames) = @stacks[frames.first(FRAMES)] ||= @stacks.size
    end
  end
end
