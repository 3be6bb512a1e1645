# frozen_string_literal: true

require "pitwall/analyse/tree/graph_sums"

module Pitwall
  module Analyse
    # The call graph: each symbol (method or native function) with its callers and callees.
    # Recursion counts once (GraphSums), as in Neighbours. So a symbol's callers add up to its total, and so do its self
    # weight and its callees.
    class Graph
      # Calls from one line. line: 0 where unknown, as in native functions.
      Place = Struct.new(:line, :total)
      # method: the caller or callee; nil where the symbol was a thread's root. places: lines of the calls, heaviest
      # first. calls: nil where calls were not traced.
      Edge = Struct.new(:method, :total, :places, :calls)
      # callers, callees: heaviest first. calls: nil where calls were not traced.
      Row = Struct.new(:method, :own, :total, :callers, :callees, :calls) do
        # Number of lines (or native functions) that called the symbol.
        #: () -> Integer
        def places = callers.sum { |edge| edge.places.size }
      end

      # @return [Integer] number of symbols that have weight but no row, because it is less than `least`
      attr_reader :hidden

      # @param least [Integer] total weight from which on a symbol has a row
      # @param group [Array<Integer>] numbers of methods that count as one symbol, which has the first one's number
      # @param edges [CallEdges, nil] where calls were traced
      # @yield [MethodInfo] returns whether the symbol may have a row. Without a row it is still a neighbour of others.
      #: (CallTree, Symbol, ?least: Integer, ?group: Array[Integer], ?edges: CallEdges?)
      #:   ?{ (MethodInfo) -> bool } -> void
      def initialize(tree, weight, least: 1, group: [], edges: nil)
        @tree = tree
        @weight = weight
        @group = group
        @edges = edges
        @keys = keys
        @totals = group.empty? ? tree.total_by_method(weight) : tree.total_by(weight, @keys, tree.methods.size)
        fit = (1...@totals.size).select { |key| @totals[key].positive? && (!block_given? || yield(tree.methods[key])) }
        @shown = fit.select { |key| @totals[key] >= least }
        @hidden = fit.size - @shown.size
      end

      # Number of rows.
      #: () -> Integer
      def size = @shown.size

      # All rows.
      #: () -> Array[Row]
      def rows = @rows ||= first(size)

      # The heaviest rows. Heaviest total first. Of equal rows, the one that was met first from the root: callers before
      # callees. Only these rows' callers and callees are summed up.
      # @param count [Integer] at most that many
      #: (Integer) -> Array[Row]
      def first(count)
        chosen = in_order.first(count)
        sums = GraphSums.new(@tree, @weight, keys: @keys, shown: chosen, count: @totals.size)
        owns = @tree.self_by(@weight, @keys, @totals.size)
        chosen.map { |key| row(key, owns[key], sums) }
      end

      private

      def in_order
        @in_order ||= first_nodes.then { |firsts| @shown.sort_by { |key| [-@totals[key], firsts[key]] } }
      end

      # By node: its symbol's number.
      def keys
        return @tree.node_methods if @group.empty?

        @tree.node_methods.map { |number| merged[number] || number }
      end

      # Number of a method of the group → the group's number.
      def merged = @merged ||= @group.to_h { |number| [number, @group.first] }

      # By symbol: the first of its nodes.
      def first_nodes
        firsts = Array.new(@totals.size)
        @keys.each_with_index { |key, node| firsts[key] ||= node }
        firsts
      end

      def row(key, own, sums)
        incoming, outgoing = calls_of(key)
        Row.new(@tree.methods[key], own, @totals[key], edges_of(sums.callers(key), incoming),
                edges_of(sums.callees(key), outgoing), incoming&.values&.sum)
      end

      # @param sums [Hash] neighbour's number → line → weight
      # @param calls [Hash{Integer => Integer}, nil] neighbour's number → calls
      def edges_of(sums, calls)
        (sums.keys | (calls || {}).keys).map { |key| edge(key, sums.fetch(key, {}), calls&.fetch(key, 0)) }
                                        .sort_by { |edge| [-edge.total, -edge.calls.to_i, edge.method&.name.to_s] }
      end

      def edge(key, lines, calls)
        places = lines.map { |line, sum| Place.new(line, sum) }.sort_by { |place| [-place.total, place.line] }
        Edge.new(key.zero? ? nil : @tree.methods[key], places.sum(&:total), places, calls)
      end

      # Calls of a symbol by callers and by callees: neighbour's number → calls. Both nil where calls were not traced.
      def calls_of(key) = @edges && [calls[0].fetch(key, {}), calls[1].fetch(key, {})]

      def calls
        @calls ||= (0...@tree.methods.size).each_with_object([{}, {}]) do |caller, (incoming, outgoing)|
          @edges.from(caller).each do |callee, (count, *)|
            next unless count.positive?

            from, to = [caller, callee].map { |number| merged[number] || number }
            (incoming[to] ||= Hash.new(0))[from] += count
            (outgoing[from] ||= Hash.new(0))[to] += count
          end
        end
      end
    end
  end
end
