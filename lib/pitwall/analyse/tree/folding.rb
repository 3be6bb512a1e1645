# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Trees in which parts are folded. The total of each weight stays the same, except that calls of folded methods are
    # dropped.
    module Folding
      GC = MethodInfo.new("(garbage collection)", "", 0, 2).freeze

      # Adds all weight below a method to the method's self weight.
      # @param numbers [Array<Integer>] the methods' numbers in the tree
      #: (CallTree, Array[Integer]) -> CallTree
      def self.blackbox(tree, numbers)
        wanted = numbers.to_h { |number| [number, true] }
        boxes = Array.new(tree.size) # by node: the outermost folded method at or above the node, or nil
        tree.move(targets(tree) do |node, parent|
          boxes[node] = boxes[parent] || (node if wanted[tree.node_methods[node]])
        end)
      end

      # Charges garbage collection to the code that was running. Collection with no such code stays where it is.
      #: (CallTree) -> CallTree
      def self.gc_to_caller(tree)
        callers = Array.new(tree.size)
        tree.move(targets(tree) do |node, parent|
          next unless tree.methods[tree.node_methods[node]].gc?

          callers[node] = callers[parent] || (parent if parent.positive?)
        end)
      end

      # Moves garbage collection out of the code that was running, into one method of its own.
      #: (CallTree) -> CallTree
      def self.gc_apart(tree)
        collecting = tree.methods.map(&:gc?)
        tree.move_to_root(GC, (1...tree.size).select { |node| collecting[tree.node_methods[node]] })
      end

      def self.targets(tree)
        parents = tree.parents
        Array.new(tree.size) { |node| (node.positive? && yield(node, parents[node])) || node }
      end
      private_class_method :targets
    end
  end
end
