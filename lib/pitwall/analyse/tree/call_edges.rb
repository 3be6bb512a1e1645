# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Calls between methods: for each caller and callee the number of calls and their weights.
    # Exporters and the callers and callees views use them.
    # A recursive call counts every time, as in callgrind. This includes recursion through other methods.
    class CallEdges
      # @return [Hash{Integer => Array<Integer>}] by method number: self weights, in the order of `weights`
      attr_reader :own

      # @param weights [Array<Symbol>] names of weights; the order of all weight lists below
      # @param folded [Array<Integer>] numbers of methods whose callees are left out
      #: (CallTree, ?Array[Symbol], ?folded: Array[Integer]) -> void
      def initialize(tree, weights = [], folded: [])
        @own = {}
        @edges = {}
        calls = tree.selfs(:calls) if tree.weights.include?(:calls)
        selfs = weights.map { |weight| tree.selfs(weight) }
        subtrees = weights.map { |weight| tree.subtrees(weight) }
        hidden = hidden(tree, folded)
        (1...tree.size).each do |node|
          next if hidden[node]

          method = tree.node_methods[node]
          add(@own[method] ||= [0] * weights.size, selfs.map { |values| values[node] })
          edge = ((@edges[tree.node_methods[tree.parents[node]]] ||= {})[method] ||= [0] * (weights.size + 1))
          add(edge, [calls ? calls[node] : 1, *subtrees.map { |values| values[node] }])
        end
      end

      # Calls that one method made: callee's number → [calls, total weights].
      # Without traced calls, the number of call paths replaces the number of calls.
      # Method 0 is the root; its callees are the methods at which threads start.
      #: (Integer) -> Hash[Integer, Array[Integer]]
      def from(method) = @edges.fetch(method, {})

      # Sum of the calls that several methods made: callee's number → calls.
      #: (Array[Integer]) -> Hash[Integer, Integer]
      def callees(methods)
        methods.each_with_object(Hash.new(0)) do |method, sums|
          from(method).each { |callee, (calls, *)| sums[callee] += calls }
        end
      end

      # Sum of the calls of several methods: caller's number → calls.
      # The key is nil where the method was a thread's root.
      #: (Array[Integer]) -> Hash[Integer?, Integer]
      def callers(methods)
        @edges.each_with_object(Hash.new(0)) do |(caller, callees), sums|
          methods.each { |method| sums[caller.zero? ? nil : caller] += callees[method][0] if callees.key?(method) }
        end
      end

      private

      # By node: true below a folded method.
      def hidden(tree, folded)
        return [] if folded.empty?

        (1...tree.size).each_with_object([]) do |node, hidden|
          parent = tree.parents[node]
          hidden[node] = hidden[parent] || folded.include?(tree.node_methods[parent])
        end
      end

      def add(sums, values)
        values.each_with_index { |value, at| sums[at] += value }
      end
    end
  end
end
