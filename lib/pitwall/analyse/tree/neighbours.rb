# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # Callers and callees of a method, with weights. Recursion counts once: a sample belongs to the caller of the
    # method's outermost call, and to the callee of its innermost call.
    # So the callers add up to the method's total, and so do its self weight and its callees.
    #
    # Traced calls count every time: a recursive method is among its own callers and callees, with calls and no weight.
    module Neighbours
      # method: nil where the method was a thread's root. calls: nil where calls were not traced.
      Row = Struct.new(:method, :total, :calls)
      # calls: all calls of the method; nil where calls were not traced.
      Result = Struct.new(:own, :total, :rows, :calls)

      # Callers of a method.
      # @param numbers [Array<Integer>] the method's numbers in the tree; several count as one method
      # @param edges [CallEdges, nil] where calls were traced
      #: (CallTree, Symbol, Array[Integer], ?CallEdges?) -> Result
      def self.callers(tree, weight, numbers, edges = nil)
        wanted = mask(tree, numbers)
        subtrees = tree.subtrees(weight)
        sums = Hash.new(0)
        inside = Array.new(tree.size, false)
        walk(tree) do |node, parent|
          next inside[node] = true if inside[parent]
          next unless wanted[tree.node_methods[node]]

          inside[node] = true
          sums[parent.zero? ? nil : tree.node_methods[parent]] += subtrees[node]
        end
        result(tree, weight, numbers, sums, edges, edges&.callers(numbers))
      end

      # Callees of a method. Parameters as for callers.
      #: (CallTree, Symbol, Array[Integer], ?CallEdges?) -> Result
      def self.callees(tree, weight, numbers, edges = nil)
        wanted = mask(tree, numbers)
        selfs = tree.selfs(weight)
        sums = Hash.new(0)
        below = Array.new(tree.size) # by node: nil outside the method, :self at its node, below it the callee's number
        walk(tree) do |node, parent|
          below[node] = if wanted[tree.node_methods[node]] then :self
                        elsif below[parent] == :self then tree.node_methods[node]
                        else below[parent]
                        end
          sums[below[node]] += selfs[node] if below[node].is_a?(Integer)
        end
        result(tree, weight, numbers, sums, edges, edges&.callees(numbers))
      end

      def self.mask(tree, numbers)
        Array.new(tree.methods.size, false).tap { |mask| numbers.each { |number| mask[number] = true } }
      end
      private_class_method :mask

      def self.walk(tree)
        parents = tree.parents
        (1...tree.size).each { |node| yield node, parents[node] }
      end
      private_class_method :walk

      def self.result(tree, weight, numbers, sums, edges, counts)
        counts&.each { |number, calls| sums[number] += 0 if calls.positive? }
        rows = sums.filter_map do |number, total|
          calls = counts&.fetch(number, 0)
          Row.new(number && tree.methods[number], total, calls) unless total.zero? && calls.to_i.zero?
        end
        rows.sort_by! { |row| [-row.total, -row.calls.to_i, row.method ? row.method.name : ""] }
        own = tree.self_by_method(weight).values_at(*numbers).sum
        Result.new(own, total(tree, weight, numbers), rows, edges&.callers(numbers)&.values&.sum)
      end
      private_class_method :result

      # Total weight of all the numbers together. One key for all of them counts a sample once.
      def self.total(tree, weight, numbers)
        wanted = mask(tree, numbers)
        tree.total_by(weight, tree.node_methods.map { |method| wanted[method] ? 1 : 0 }, 2)[1]
      end
      private_class_method :total
    end
  end
end
