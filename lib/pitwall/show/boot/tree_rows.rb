# frozen_string_literal: true

module Pitwall
  module Show
    # The rows of a boot's tree that are shown: loads that weigh enough, the heaviest first below each.
    class BootTreeRows
      # depth: 0 for a load that was not within another · hidden: loads below it that are not shown
      Row = Struct.new(:node, :depth, :hidden, keyword_init: true)
      # The smallest share of a tree's weight that is shown.
      LEAST = 0.005
      private_constant :LEAST

      # @return [Array<Row>]
      attr_reader :rows

      # @param weight [Symbol] :wall, :objects, …
      #: (Analyse::Boot, weight: Symbol, limit: Integer) -> void
      def initialize(boot, weight:, limit:)
        @weight = weight
        @rows = []
        whole = boot.roots.sum { |node| [node.total[weight], 0].max }
        @least = [whole * LEAST, 1].max
        shown = heaviest(boot, limit)
        add(boot.roots, 0, shown)
      end

      private

      # A limit takes the lightest away, never a load whose children are shown: a child weighs no more than its parent.
      def heaviest(boot, limit)
        found = boot.nodes.select { |node| node.total[@weight] >= @least }
        found.sort_by { |node| [-node.total[@weight], node.above.size] }.first(limit).to_h { |node| [node, true] }
      end

      def add(nodes, depth, shown)
        nodes.select { |node| shown.key?(node) }.sort_by { |node| -node.total[@weight] }.each do |node|
          row = Row.new(node: node, depth: depth, hidden: 0)
          @rows << row
          row.hidden = node.children.count { |child| !shown.key?(child) }
          add(node.children, depth + 1, shown)
        end
      end
    end
  end
end
