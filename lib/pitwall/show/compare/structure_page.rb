# frozen_string_literal: true

module Pitwall
  module Show
    # What a page is given of the change of call paths: the tree as columns, and the lists of what differs.
    class StructurePage
      # Most paths of a page. Of more, those below this part of the whole count for their callers.
      MOST = 200_000
      SMALLEST = 1e-5
      PRESENCES = %i[both new gone].freeze
      VERDICTS = %i[exact beyond chance small].freeze
      private_constant :MOST, :SMALLEST, :PRESENCES, :VERDICTS

      # @param lists [Hash{String => Array}] "new", "gone": groups; "more": paths of both sides
      #: (Analyse::StructureChange::Result, Hash[String, Array[untyped]]) -> void
      def initialize(result, lists)
        @result = result
        @lists = lists
      end

      # @param data [PageData] takes the columns
      # @yield [Group | More] returns its name
      #: (PageData, base: String, side: String, notes: Array[String]) { (untyped) -> String } -> Hash[String, untyped]
      def to_h(data, base:, side:, notes:)
        keep
        numbers = @kept.map { |node| @result.paths.numbers[node] }
        known = numbers.drop(1).uniq
        place = known.each_with_index.to_h { |number, at| [number, at + 1] }
        methods = known.map { |number| @result.names[number] }
        { "base" => base, "side" => side, "exact" => @result.exact, "notes" => notes, "runs" => @result.runs,
          "left_out" => @result.paths.size - @kept.size,
          "methods" => methods.map { |method| [method.name, method.path, method.kind] },
          "parents" => data.column(@kept.map { |node| node.zero? ? 0 : @numbers[@result.paths.parents[node]] }),
          "keys" => data.column(numbers.map { |number| place.fetch(number, 0) }),
          "selfs" => @result.selfs.map { |selfs| data.column(sums(selfs)) },
          "calls" => @result.calls&.map { |calls| data.column(@kept.map { |node| calls[node].round }) },
          "presence" => data.column(@kept.map { |node| PRESENCES.index(@result.presence(node)) }),
          "verdicts" => data.column(@kept.map { |node| VERDICTS.index(@result.verdicts[node]) }),
          "moved" => @result.moved.map { |node, callers| [@numbers[node], callers(callers)] },
          "rows" => @lists.flat_map { |kind, list| list.map { |item| row(kind, item, yield(item)) } } }
      end

      private

      # @kept: the nodes of the page. @numbers: by node, the page's number of it or of its nearest kept caller
      def keep
        least = @result.paths.size > MOST ? @result.totals.map(&:first).max * SMALLEST : 0
        a, b = @result.totals
        @kept = []
        @numbers = []
        @result.paths.parents.each_with_index do |parent, node|
          small = node.positive? && a[node] < least && b[node] < least
          @kept << node unless small
          @numbers << (small ? @numbers[parent] : @kept.size - 1)
        end
      end

      def sums(selfs)
        sums = Array.new(@kept.size, 0)
        selfs.each_with_index { |own, node| sums[@numbers[node]] += own }
        sums.map(&:round)
      end

      def callers(numbers) = numbers.first(8).map { |number| @result.names[number].name }

      def row(kind, item, name)
        { "kind" => kind, "node" => @numbers[item.node], "name" => name, "cost" => item.cost.round,
          "calls" => item.calls && [*item.calls].map(&:round), "doubt" => item.doubt.to_s,
          "file" => @result.method(item.node).path }
      end
    end
  end
end
