# frozen_string_literal: true

module Pitwall
  module Analyse
    class StructureChange
      # The call paths of all runs of both sides, as one tree. Node 0 is the empty stack, and a parent has a lower
      # number than its children. A path is a list of methods (ProfileChange::Names): lines make no difference.
      #
      # Repeated ends of a path are one: `fact > fact > fact` is `fact`, and `each > block in walk > each > block in
      # walk` is `each > block in walk`. So a deeper recursion is no new path, and has more calls.
      class Paths
        # Longest part of a path whose repetition is found, in frames.
        PERIOD = 6
        SHIFT = 26 # bits for a method's number in the keys of the table
        private_constant :PERIOD, :SHIFT

        # @return [Array<Integer>] by node: parent's node, number of the method
        attr_reader :parents, :numbers

        #: () -> void
        def initialize
          @parents = [0]
          @numbers = [0]
          @children = {}
        end

        # Number of nodes.
        #: () -> Integer
        def size = @parents.size

        # The node of a method that is called at a node.
        #: (Integer, Integer) -> Integer
        def child(parent, number)
          key = (parent << SHIFT) | number
          @children[key] ||= repeated(parent, number) || add(parent, number)
        end

        # The child of a node with a method; nil if there is none.
        #: (Integer, Integer) -> Integer?
        def child_if_any(parent, number)
          found = @children[(parent << SHIFT) | number]
          found if found && @parents[found] == parent
        end

        # Adds a tree's paths.
        # @param keys [Array<Integer>] by node of the tree: number of the method
        # @return [Array<Integer>] by node of the tree: node of the path
        #: (CallTree, Array[Integer]) -> Array[Integer]
        def add_tree(tree, keys)
          nodes = Array.new(tree.size, 0)
          parents = tree.parents
          at = 1
          while at < nodes.size
            nodes[at] = child(nodes[parents[at]], keys[at])
            at += 1
          end
          nodes
        end

        # The paths after subtrees were put in other places.
        # @param moves [Hash{Integer => Integer}] root of a subtree → the node that it becomes; none of them is inside
        #   another subtree that moves
        # @return [Array(Paths, Array<Integer>)] the paths, and by old node: the new one
        #: (Hash[Integer, Integer]) -> [Paths, Array[Integer]]
        def moved(moves)
          return [self, Array.new(size) { |node| node }] if moves.empty?

          paths = Paths.new
          nodes = Array.new(size)
          nodes[0] = 0
          late = (1...size).reject do |node|
            next false if moves.key?(node) || (above = nodes[@parents[node]]).nil?

            nodes[node] = paths.add_as(above, @numbers[node])
          end
          late.each do |node|
            target = moves[node]
            nodes[node] = target ? nodes[target] : paths.known(nodes[@parents[node]], @numbers[node])
          end
          [paths, nodes]
        end

        # By node: sums over the subtrees.
        #: (Array[Numeric]) -> Array[Numeric]
        def subtrees(selfs)
          sums = selfs.dup
          node = sums.size - 1
          while node.positive?
            sums[@parents[node]] += sums[node]
            node -= 1
          end
          sums
        end

        # By node: the children, in order of their numbers.
        #: () -> Array[Array[Integer]]
        def children
          @lists ||= begin
            lists = {}
            (1...size).each { |node| (lists[@parents[node]] ||= []) << node }
            lists.default = [].freeze
            lists
          end
        end

        # The nodes from a node up to the root, which is left out.
        #: (Integer) -> Array[Integer]
        def upwards(node)
          list = []
          until node.zero?
            list << node
            node = @parents[node]
          end
          list
        end

        protected

        # Ends that were repeated have been found before.
        def add_as(parent, number) = @children[(parent << SHIFT) | number] = add(parent, number)

        def known(parent, number) = @children[(parent << SHIFT) | number] ||= add(parent, number)

        private

        def add(parent, number)
          @numbers << number
          @parents << parent
          @parents.size - 1
        end

        # The node whose path ends like the path of the new node, if the new path's end is a repetition; else nil.
        def repeated(parent, number)
          end_of_path = [number]
          node = parent
          until node.zero? || end_of_path.size == 2 * PERIOD
            end_of_path << @numbers[node]
            node = @parents[node]
          end
          period = (1..end_of_path.size / 2).find do |length|
            end_of_path[0, length] == end_of_path[length, length]
          end
          return if period.nil?

          (period - 1).times { parent = @parents[parent] }
          parent
        end
      end
    end
  end
end
