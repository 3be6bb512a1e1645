# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Who called whom, how often and at what cost: a call tree by method, as exporters and the views of neighbours need it. A method
    # that calls itself by way of others counts at every turn, as callgrind does.
    class CallEdges
      # @return [Hash{Integer => Array<Integer>}] by method number: its own weights
      attr_reader :own

      # @param weights [Array<Symbol>] in the order of which weights are given
      # @param folded [Array<Integer>] methods below which nothing is looked at
      #: (CallTree, ?Array[Symbol], ?folded: Array[Integer]) -> void
      def initialize(tree, weights = [], folded: [])
        @own = {}
        @edges = {}
        calls = tree.selfs(:calls) if tree.weights.include?(:calls)
        selfs, subtrees = weights.map { |weight| tree.selfs(weight) }, weights.map { |weight| tree.subtrees(weight) }
        hidden = hidden(tree, folded)
        (1...tree.size).each do |node|
          next if hidden[node]

          method = tree.node_methods[node]
          add(@own[method] ||= [0] * weights.size, selfs.map { |values| values[node] })
          edge = ((@edges[tree.node_methods[tree.parents[node]]] ||= {})[method] ||= [0] * (weights.size + 1))
          add(edge, [calls ? calls[node] : 1, *subtrees.map { |values| values[node] }])
        end
      end

      # What a method called: callee's number → [calls, the weights with all below]. Where calls were not traced, the ways that lead
      # there stand for them. Of method 0, the root, it is where threads start.
      #: (Integer) -> Hash[Integer, Array[Integer]]
      def from(method) = @edges.fetch(method, {})

      # Calls that several methods made, as one: callee's number → calls.
      #: (Array[Integer]) -> Hash[Integer, Integer]
      def callees(methods)
        methods.each_with_object(Hash.new(0)) { |method, sums| from(method).each { |callee, (calls, *)| sums[callee] += calls } }
      end

      # Calls of several methods, as one: caller's number → calls; nil where the method was the root of its thread.
      #: (Array[Integer]) -> Hash[Integer?, Integer]
      def callers(methods)
        @edges.each_with_object(Hash.new(0)) do |(caller, callees), sums|
          methods.each { |method| sums[caller.zero? ? nil : caller] += callees[method][0] if callees.key?(method) }
        end
      end

      private

      # By node: whether it is below a method that is folded.
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
