# frozen_string_literal: true

require "pitwall/analyse/recording/method_info"

module Pitwall
  module Analyse
    # A tree of calls with weights: wall ns, CPU ns, captures, calls, objects, bytes.
    #
    # A node is a number, and parallel arrays hold each node's values. Node 0 is the empty stack and has no self weight.
    # A parent has a lower number than its children. So one pass from the last node sums up subtrees, and one pass from
    # the first node hands values down from ancestors. A tree never changes. Folding makes a new tree, which shares
    # unchanged arrays.
    class CallTree
      # @return [Array<MethodInfo>] by method number; 0 is the root
      attr_reader :methods
      # @return [Array<Integer>] by node: parent's node, method number, line
      attr_reader :parents, :node_methods, :lines

      # CallTreeBuilder makes trees.
      # @param selfs [Hash{Symbol => Array<Integer>}] by weight and node: self weight in ns or a count
      #: (
      #    methods: Array[MethodInfo], parents: Array[Integer], node_methods: Array[Integer], lines: Array[Integer],
      #    selfs: Hash[Symbol, Array[Integer]]
      #  ) -> void
      def initialize(methods:, parents:, node_methods:, lines:, selfs:)
        @methods = methods
        @parents = parents
        @node_methods = node_methods
        @lines = lines
        @selfs = selfs
        @subtrees = {}
      end

      # Number of nodes.
      #: () -> Integer
      def size = @parents.size

      # Names of the weights.
      #: () -> Array[Symbol]
      def weights = @selfs.keys

      # By node: self weight, the weight of samples whose leaf is the node.
      #: (Symbol) -> Array[Integer]
      def selfs(weight) = @selfs.fetch(weight)

      # By node: total weight, the weight of samples that contain the node. Node 0 has the weight of all samples.
      #: (Symbol) -> Array[Integer]
      def subtrees(weight)
        @subtrees[weight] ||= sum_up(selfs(weight).dup)
      end

      # Adds to each node's weight those of the nodes below it.
      # @param weights [Array<Integer>] by node; is changed
      #: (Array[Integer]) -> Array[Integer]
      def sum_up(weights)
        parents = @parents
        node = weights.size - 1
        while node.positive?
          weights[parents[node]] += weights[node]
          node -= 1
        end
        weights
      end

      # Weight of all samples.
      #: (Symbol) -> Integer
      def total(weight) = subtrees(weight)[0]

      # By method: self weight.
      #: (Symbol) -> Array[Integer]
      def self_by_method(weight)
        sum_by(@node_methods, @methods.size, selfs(weight))
      end

      # By method: total weight. Recursion counts once.
      #: (Symbol) -> Array[Integer]
      def total_by_method(weight)
        @outermost ||= outermost(@node_methods, @methods.size)
        sum_outermost(@node_methods, @methods.size, @outermost, subtrees(weight))
      end

      # Total weight by any other key of a node, e.g. its line. Recursion counts once.
      # @param keys [Array<Integer>] by node: its key, from 0 to count - 1
      #: (Symbol, Array[Integer], Integer) -> Array[Integer]
      def total_by(weight, keys, count)
        sum_outermost(keys, count, outermost(keys, count), subtrees(weight))
      end

      # Self weight by key.
      #: (Symbol, Array[Integer], Integer) -> Array[Integer]
      def self_by(weight, keys, count) = sum_by(keys, count, selfs(weight))

      # Nodes that have no ancestor with the same key. Walks the tree and counts the keys on the path.
      # @param keys [Array<Integer>] by node: its key, from 0 to count - 1
      #: (Array[Integer], Integer) -> Array[Integer]
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

      # Two lists by node: the first child, or nil; and the next child of the same parent, or nil.
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

      # A tree whose self weights were moved to other nodes.
      # Calls move only between nodes of the same method. Other moved calls are dropped, since each call belongs to its
      # own method.
      # @param targets [Array<Integer>] by node: the node that receives its weight
      #: (Array[Integer]) -> CallTree
      def move(targets)
        moved = @selfs.to_h do |name, weights|
          sums = Array.new(weights.size, 0)
          weights.each_with_index do |weight, node|
            next if weight.zero?

            target = targets[node]
            sums[target] += weight unless name == :calls && @node_methods[node] != @node_methods[target]
          end
          [name, sums]
        end
        CallTree.new(methods: @methods, parents: @parents, node_methods: @node_methods, lines: @lines, selfs: moved)
      end

      # A tree with one more method below the root, which receives the self weight of the given nodes.
      #: (MethodInfo, Array[Integer]) -> CallTree
      def move_to_root(method, nodes)
        tree = CallTree.new(methods: @methods + [method], parents: @parents + [0],
                            node_methods: @node_methods + [@methods.size], lines: @lines + [0],
                            selfs: @selfs.transform_values { |weights| weights + [0] })
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
    end
  end
end
