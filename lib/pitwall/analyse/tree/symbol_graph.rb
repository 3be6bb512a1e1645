# frozen_string_literal: true

require "pitwall/analyse/tree/graph"
require "pitwall/analyse/tree/method_match"
require "pitwall/analyse/tree/outline"

module Pitwall
  module Analyse
    # The call graph of the symbol that a name means: its callers and callees, and the chains of callers up to the
    # roots. Several methods that the name means count as one symbol.
    class SymbolGraph
      # @return [Array<MethodInfo>] the methods that the name means
      attr_reader :methods
      # @return [Graph::Row]
      attr_reader :row
      # @return [Integer] callers and callees with less weight are left out of views
      attr_reader :least

      # @param name [String] as MethodMatch takes it
      # @param threshold [Numeric] in percent of the whole; of a symbol below that: in percent of the symbol's total
      # @raise [UsageError] when the tree has no such symbol
      #: (CallTree, Symbol, String, ?threshold: Numeric, ?edges: CallEdges?) -> void
      def initialize(tree, weight, name, threshold: 0, edges: nil)
        @tree = tree
        @weight = weight
        @numbers = MethodMatch.find(tree.methods, name)
        @methods = tree.methods.values_at(*@numbers)
        first = @methods.first
        found = Graph.new(tree, weight, group: @numbers, edges: edges) { |method| method.equal?(first) }.rows
        @row = found.first || Graph::Row.new(first, 0, 0, [], [])
        @least = smallest(threshold)
      end

      # The chains of callers.
      #: () -> Outline::Result
      def chains = @chains ||= Outline.callers(@tree, @weight, @numbers, threshold: @least)

      private

      def smallest(threshold)
        [@tree.total(@weight), @row.total].map { |whole| [(whole * threshold / 100r).ceil, 1].max }
                                          .find { |least| least <= @row.total } || 1
      end
    end
  end
end
