# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"

module Pitwall
  module Analyse
    # The tree from the root down (callees below callers) or from the leaves up (callers below callees), with equal
    # methods under one parent merged and what lies below a threshold left out, but counted.
    module Outline
      # depth counts from 0; total is what passes here, own what ends here (top-down only); hidden is what was left out
      # among its children; parent is the number of the parent's row, nil at depth 0; also: the row's own of a second weight.
      Row = Struct.new(:depth, :parent, :method, :own, :total, :hidden, :children, :also)

      # rows in reading order, heaviest child first; hidden: weight left out at depth 0; total: of the tree.
      Result = Struct.new(:rows, :hidden, :total)

      # @param threshold [Integer] weight below which a row is left out
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

      # Each method that has self weight, with the ways that lead to it. A row's total is the part of its depth-0
      # ancestor's self weight that came that way.
      #: (CallTree, Symbol, ?threshold: Integer) -> Result
      def self.bottom_up(tree, weight, threshold: 0)
        parents = tree.parents
        leaves = []
        tree.selfs(weight).each_with_index { |own, node| leaves << [node, own] unless own.zero? }
        by_method = lambda do |items|
          groups = {}
          items.each do |node, own|
            next if node.zero?

            group = (groups[tree.node_methods[node]] ||= Group.new([], 0, 0))
            group.items << [node, own]
            group.total += own
          end
          groups
        end
        grow(tree, weight, threshold, by_method.call(leaves),
             ->(items) { by_method.call(items.map { |node, own| [parents[node], own] }) })
      end

      # Rows of other code that only lead to the next are one row where they are many: "12 frames, Rack::Runtime#call to Puma::Server#process".
      # @yield [MethodInfo] whether a method is other code
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
          next if length < LONG

          run_end = at + length - 1
          names = [row, result.rows[run_end]].map { |one| one.method.name }
          rows.last.method = MethodInfo.new("#{length} frames, #{names.join(" to ")}", "", 0, 4)
        end
        Result.new(rows, result.hidden, result.total)
      end

      # Frames of a run that becomes one row, and the part of the weight that may end in each of them.
      LONG = 5
      ENDS = 0.005
      private_constant :LONG, :ENDS

      def self.run_length(result, from)
        at = from
        while (row = result.rows[at]) && row.children == 1 && row.own <= result.total * ENDS && yield(row.method)
          at += 1
        end
        at - from
      end
      private_class_method :run_length

      # Nodes that are one row.
      Group = Struct.new(:items, :own, :total, :also)
      private_constant :Group

      # Depth first with a stack of our own: programs recurse deeper than Ruby lets us.
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

      # The lightest first, as they are popped from the end.
      def self.visible(groups, threshold, depth, parent)
        shown, hidden = groups.partition { |_, group| group.total >= threshold && group.total.positive? }
        shown.sort_by! { |method, group| [group.total, -method] }
        [hidden.sum { |_, group| group.total }, shown.map { |method, group| [method, group, depth, parent] }]
      end
      private_class_method :visible
    end
  end
end
