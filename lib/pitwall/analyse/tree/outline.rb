# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # A call tree as rows: top-down (callees below callers) or bottom-up (callers below callees).
    # Equal methods under one parent are one row. Rows below a threshold are left out, and their weight is summed up.
    module Outline
      # depth:    from 0
      # parent:   index of the parent's row, nil at depth 0
      # own:      self weight (top-down only)
      # total:    weight of the samples that pass through the row
      # hidden:   weight of the children left out
      # children: number of children shown
      # also:     self weight of a second weight
      Row = Struct.new(:depth, :parent, :method, :own, :total, :hidden, :children, :also)

      # rows: in reading order, heaviest child first. hidden: weight left out at depth 0. total: of the tree.
      Result = Struct.new(:rows, :hidden, :total)

      # The tree from the roots to the leaves.
      # @param threshold [Integer] rows with less total weight are left out
      # @param also [Symbol, nil] a second weight, e.g. :calls
      #: (CallTree, Symbol, ?threshold: Integer, ?also: Symbol?) -> Result
      def self.top_down(tree, weight, threshold: 0, also: nil)
        firsts, nexts = tree.links
        subtrees = tree.subtrees(weight)
        selfs = tree.selfs(weight)
        seconds = also && tree.selfs(also)
        expand = lambda do |nodes|
          groups = {}
          nodes.each do |node|
            child = firsts[node]
            while child
              unless subtrees[child].zero?
                group = (groups[tree.node_methods[child]] ||= Group.new([], 0, 0, 0))
                group.items << child
                group.own += selfs[child]
                group.total += subtrees[child]
                group.also += seconds[child] if seconds
              end
              child = nexts[child]
            end
          end
          groups
        end
        grow(tree, weight, threshold, expand.call([0]), expand)
      end

      # The tree from the leaves to the roots. Depth 0 has the methods with self weight, and callers are below.
      # A row's total is the part of the self weight at depth 0 that came through this row.
      #: (CallTree, Symbol, ?threshold: Integer) -> Result
      def self.bottom_up(tree, weight, threshold: 0)
        leaves = []
        tree.selfs(weight).each_with_index { |own, node| leaves << [node, own] unless own.zero? }
        upwards(tree, weight, threshold, leaves)
      end

      # The chains of callers of a symbol. Depth 0 has the symbol with its total weight, and callers are below.
      # A row's total is the part of the symbol's total that came through this row. Recursion counts once: chains start
      # at the symbol's outermost call.
      # @param numbers [Array<Integer>] the symbol's methods in the tree; several count as one symbol
      #: (CallTree, Symbol, Array[Integer], ?threshold: Integer) -> Result
      def self.callers(tree, weight, numbers, threshold: 0)
        parents = tree.parents
        wanted = numbers.to_h { |number| [number, true] }
        inside = Array.new(tree.size, false)
        subtrees = tree.subtrees(weight)
        calls = (1...tree.size).filter_map do |node|
          next unless (inside[node] = inside[parents[node]] || wanted.key?(tree.node_methods[node]))

          [node, subtrees[node]] unless inside[parents[node]] || subtrees[node].zero?
        end
        upwards(tree, weight, threshold, calls)
      end

      # @param items [Array<Array(Integer, Integer)>] node and weight of what the rows at depth 0 are made of
      def self.upwards(tree, weight, threshold, items)
        parents = tree.parents
        by_method = lambda do |nodes|
          groups = {}
          nodes.each do |node, sum|
            next if node.zero?

            group = (groups[tree.node_methods[node]] ||= Group.new([], 0, 0))
            group.items << [node, sum]
            group.total += sum
          end
          groups
        end
        grow(tree, weight, threshold, by_method.call(items),
             ->(nodes) { by_method.call(nodes.map { |node, sum| [parents[node], sum] }) })
      end
      private_class_method :upwards

      # Replaces each run of LONG_RUN or more rows of other code by one row, e.g.
      # "12 frames, Rack::Runtime#call to Puma::Server#process".
      # A row of a run has one child and a self weight of at most RUN_SELF_SHARE times the total.
      # @yield [MethodInfo] returns whether the method is other code
      #: (Result) { (MethodInfo) -> bool } -> Result
      def self.folded(result)
        numbers = {} # old → new
        rows = []
        run_end = -1
        result.rows.each_with_index do |row, at|
          if at <= run_end
            numbers[at] = rows.size - 1
            next rows.last.hidden += row.hidden
          end

          length = run_length(result, at) { |method| yield(method) }
          numbers[at] = rows.size
          rows << row.dup.tap { |copy| copy.parent = row.parent && numbers[row.parent] }
          next if length < LONG_RUN

          run_end = at + length - 1
          names = [row, result.rows[run_end]].map { |one| one.method.name }
          rows.last.method = MethodInfo.new("#{length} frames, #{names.join(" to ")}", "", 0, 4)
        end
        Result.new(rows, result.hidden, result.total)
      end

      # Fewest rows of a run, and the largest share of the total that a row of a run may have as self weight.
      LONG_RUN = 5
      RUN_SELF_SHARE = 0.005
      private_constant :LONG_RUN, :RUN_SELF_SHARE

      def self.run_length(result, from)
        at = from
        most = result.total * RUN_SELF_SHARE
        at += 1 while (row = result.rows[at]) && row.children == 1 && row.own <= most && yield(row.method)
        at - from
      end
      private_class_method :run_length

      # Nodes that share one row.
      Group = Struct.new(:items, :own, :total, :also)
      private_constant :Group

      # Depth first, with an explicit stack, because recorded programs recurse deeper than Ruby code may here.
      def self.grow(tree, weight, threshold, roots, expand)
        rows = []
        hidden, stack = visible(roots, threshold, 0, nil)
        until stack.empty?
          method, group, depth, parent = stack.pop
          row = Row.new(depth, parent, tree.methods[method], group.own, group.total, 0, 0, group.also)
          rows << row
          row.hidden, children = visible(expand.call(group.items), threshold, depth + 1, rows.size - 1)
          row.children = children.size
          stack.concat(children)
        end
        Result.new(rows, hidden, tree.total(weight))
      end
      private_class_method :grow

      # Children are sorted lightest first, because they are popped from the end.
      def self.visible(groups, threshold, depth, parent)
        shown, hidden = groups.partition { |_, group| group.total >= threshold && group.total.positive? }
        shown.sort_by! { |method, group| [group.total, -method] }
        [hidden.sum { |_, group| group.total }, shown.map { |method, group| [method, group, depth, parent] }]
      end
      private_class_method :visible
    end
  end
end
