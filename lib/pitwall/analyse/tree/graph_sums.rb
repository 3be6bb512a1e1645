# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Weights of a tree's calls by caller, callee and line of the call, for Graph. One pass over the tree.
    # Recursion counts once: a sample belongs to the caller of a method's outermost call, and to the callee of its
    # innermost call.
    class GraphSums
      LINE_BITS = 24
      MOST_LINES = (1 << LINE_BITS) - 1
      private_constant :LINE_BITS, :MOST_LINES

      # @param keys [Array<Integer>] by node: number of its method
      # @param shown [Array<Integer>] numbers of the methods whose callers and callees are wanted
      # @param count [Integer] of methods
      #: (CallTree, Symbol, keys: Array[Integer], shown: Array[Integer], count: Integer) -> void
      def initialize(tree, weight, keys:, shown:, count:)
        @tree = tree
        @keys = keys
        @open = Array.new(count) # by method: node of the innermost open call
        @callers = by_method(shown)
        @callees = by_method(shown)
        walk(tree.subtrees(weight))
      end

      # Caller's number → line of the call → weight. The number is 0 where the method was a thread's root.
      #: (Integer) -> Hash[Integer, Hash[Integer, Integer]]
      def callers(method) = by_neighbour(@callers[method])

      # Callee's number → line of the call → weight.
      #: (Integer) -> Hash[Integer, Hash[Integer, Integer]]
      def callees(method) = by_neighbour(@callees[method])

      private

      def by_method(shown)
        Array.new(@open.size).tap { |sums| shown.each { |key| sums[key] = Hash.new(0) } }
      end

      # Depth first. Leaves out nodes without weight.
      def walk(subtrees)
        firsts, nexts = @tree.links
        parents = @tree.parents
        outer = Array.new(@tree.size) # by node: the call of the same method that it is in
        called = Array.new(@tree.size) # by open node: its child on the way to the current node
        node = firsts[0]
        while node
          sum = subtrees[node]
          key = @keys[node]
          parent = parents[node]
          called[parent] = node
          outside = outer[node] = @open[key]
          child = nil
          if sum != 0
            outside ? leave(key, called[outside], sum) : enter(key, parent, sum)
            callees = @callees[@keys[parent]]
            callees[place(key, parent)] += sum if callees
            child = firsts[node]
          end
          if child
            @open[key] = node
            next node = child
          end
          until (sibling = nexts[node])
            return if (node = parents[node]) == 0

            @open[@keys[node]] = outer[node]
          end
          node = sibling
        end
      end

      # An outermost call.
      def enter(key, parent, sum)
        callers = @callers[key]
        callers[place(@keys[parent], parent)] += sum if callers
      end

      # A recursive call: its weight no longer belongs to the callee of the outer call.
      # @param callee [Integer] the outer call's child on the way to this call
      def leave(key, callee, sum)
        callees = @callees[key]
        callees[place(@keys[callee], @tree.parents[callee])] -= sum if callees
      end

      # A neighbour's number and the line of the call in one number: such keys make fast hashes.
      def place(key, caller)
        line = @tree.lines[caller]
        (key << LINE_BITS) | (line > MOST_LINES ? MOST_LINES : line)
      end

      def by_neighbour(sums)
        sums.each_with_object({}) do |(place, sum), found|
          (found[place >> LINE_BITS] ||= {})[place & MOST_LINES] = sum if sum.positive?
        end
      end
    end
  end
end
