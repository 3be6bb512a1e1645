# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Trees with parts folded away. Totals stay the same: weight moves, none is lost but the calls of methods folded away.
    module Folding
      GC = MethodInfo.new("(garbage collection)", "", 0, 2).freeze

      # Everything below a method becomes the method's own.
      # @param numbers [Array<Integer>] the methods' numbers in the tree
      #: (CallTree, Array[Integer]) -> CallTree
      def self.blackbox(tree, numbers)
        wanted = numbers.to_h { |number| [number, true] }
        boxes = Array.new(tree.size) # the outermost folded node above, if any
        tree.move(targets(tree) do |node, parent|
          boxes[node] = boxes[parent] || (node if wanted[tree.node_methods[node]])
        end)
      end

      # Garbage collection charged to the code that was running when it happened; where none was, it stays.
      #: (CallTree) -> CallTree
      def self.gc_to_caller(tree)
        homes = Array.new(tree.size)
        tree.move(targets(tree) do |node, parent|
          homes[node] = (homes[parent] || (parent if parent.positive?)) if tree.methods[tree.node_methods[node]].gc?
        end)
      end

      # Garbage collection taken out of the code that was running, as one method of its own.
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
