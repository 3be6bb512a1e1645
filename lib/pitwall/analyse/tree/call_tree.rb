# frozen_string_literal: true

require "pitwall/analyse/tree/method_info"

module Pitwall
  module Analyse
    # One weighted tree of calls, whatever is weighed: wall ns, CPU ns, captures; later objects and bytes.
    #
    # Nodes are numbers; parallel arrays say what they are. Node 0 is the empty stack, weighs nothing itself, and every
    # node's parent has a lower number: so sums over subtrees are one pass from the end, and what ancestors decide is one
    # pass from the start. Nothing here changes a tree; folding makes a new one that shares what stayed the same.
    class CallTree
      # @return [Array<MethodInfo>] by method number; 0 is the root
      attr_reader :methods
      # @return [Array<Integer>] by node
      attr_reader :parents, :node_methods, :lines

      # Built by CallTreeBuilder.
      # @param selfs [Hash{Symbol => Array<Integer>}] weight → by node, in ns or a count
      #: (methods: Array[MethodInfo], parents: Array[Integer], node_methods: Array[Integer], lines: Array[Integer], selfs: Hash[Symbol, Array[Integer]]) -> void
      def initialize(methods:, parents:, node_methods:, lines:, selfs:)
        @methods = methods
        @parents = parents
        @node_methods = node_methods
        @lines = lines
        @selfs = selfs
        @subtrees = {}
      end

      #: () -> Integer
      def size = @parents.size

      #: () -> Array[Symbol]
      def weights = @selfs.keys

      # By node: weight of samples that end there.
      #: (Symbol) -> Array[Integer]
      def selfs(weight) = @selfs.fetch(weight)

      # By node: weight of samples that pass there. Node 0 has the total.
      #: (Symbol) -> Array[Integer]
      def subtrees(weight)
        @subtrees[weight] ||= begin
          sums = selfs(weight).dup
          parents = @parents
          node = sums.size - 1
          while node.positive?
            sums[parents[node]] += sums[node]
            node -= 1
          end
          sums
        end
      end

      # Weight of everything.
      #: (Symbol) -> Integer
      def total(weight) = subtrees(weight)[0]

      # By method: self weight.
      #: (Symbol) -> Array[Integer]
      def self_by_method(weight)
        sum_by(@node_methods, @methods.size, selfs(weight))
      end

      # By method: weight of samples in which it occurs, recursion counted once.
      #: (Symbol) -> Array[Integer]
      def total_by_method(weight)
        @outermost ||= outermost(@node_methods, @methods.size)
        sum_outermost(@node_methods, @methods.size, @outermost, subtrees(weight))
      end

      # The same for any other key of a node, e.g. its line.
      # @param keys [Array<Integer>] by node, from 0 to count - 1
      #: (Symbol, Array[Integer], Integer) -> Array[Integer]
      def total_by(weight, keys, count)
        sum_outermost(keys, count, outermost(keys, count), subtrees(weight))
      end

      # By key: self weight.
      #: (Symbol, Array[Integer], Integer) -> Array[Integer]
      def self_by(weight, keys, count) = sum_by(keys, count, selfs(weight))

      # By node: the first child, or nil; and the next child of the same parent, or nil.
      #: () -> [Array[Integer?], Array[Integer?]]
      def links
        @links ||= begin
          firsts = Array.new(size)
          nexts = Array.new(size)
          parents = @parents
          node = size - 1
          while node.positive?
            parent = parents[node]
            nexts[node] = firsts[parent]
            firsts[parent] = node
            node -= 1
          end
          [firsts, nexts]
        end
      end

      # The same tree with weights moved: each node's goes to the node named for it. How often a method was called is no other
      # method's weight: calls move between nodes of one method only, else they go.
      # @param targets [Array<Integer>] by node
      #: (Array[Integer]) -> CallTree
      def move(targets)
        moved = @selfs.to_h do |name, weights|
          sums = Array.new(weights.size, 0)
          weights.each_with_index { |weight, node| sums[targets[node]] += weight unless weight.zero? || (name == :calls && @node_methods[node] != @node_methods[targets[node]]) }
          [name, sums]
        end
        CallTree.new(methods: @methods, parents: @parents, node_methods: @node_methods, lines: @lines, selfs: moved)
      end

      # With one more method below the root, and the weight of the nodes given moved there.
      #: (MethodInfo, Array[Integer]) -> CallTree
      def move_to_root(method, nodes)
        tree = CallTree.new(methods: @methods + [method], parents: @parents + [0], node_methods: @node_methods + [@methods.size],
                            lines: @lines + [0], selfs: @selfs.transform_values { |weights| weights + [0] })
        targets = Array.new(tree.size) { |node| node }
        nodes.each { |node| targets[node] = size }
        tree.move(targets)
      end

      private

      def sum_by(keys, count, weights)
        sums = Array.new(count, 0)
        node = 0
        size = weights.size
        while node < size
          weight = weights[node]
          sums[keys[node]] += weight unless weight == 0
          node += 1
        end
        sums
      end

      def sum_outermost(keys, count, outermost, subtrees)
        sums = Array.new(count, 0)
        outermost.each { |node| sums[keys[node]] += subtrees[node] }
        sums
      end

      # Nodes that no node above shares its key with, found by walking the tree with a count of the keys on the path.
      def outermost(keys, count)
        firsts, nexts = links
        parents = @parents
        open = Array.new(count, 0)
        found = []
        node = firsts[0]
        while node
          key = keys[node]
          found << node if (depth = open[key]) == 0
          if (child = firsts[node])
            open[key] = depth + 1
            node = child
            next
          end
          until (sibling = nexts[node])
            node = parents[node]
            return found if node == 0

            open[keys[node]] -= 1
          end
          node = sibling
        end
        found
      end
    end
  end
end
