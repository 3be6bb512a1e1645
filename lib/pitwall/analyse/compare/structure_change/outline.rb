# frozen_string_literal: true

module Pitwall
  module Analyse
    class StructureChange
      # The tree of paths with both weights, cut down to a number of rows: those that explain most of the difference.
      #
      # What counts is the difference in structure: weight of paths that one side alone has, or that it calls more
      # often, whichever sign. Of other paths only the sum counts, because times of equal work differ by chance.
      module Outline
        # A row.
        #
        # node:     the path; of several frames, the first
        # last:     the last frame's path, if the row stands for a chain of frames without differences; else nil
        # frames:   number of frames
        # depth:    from 0
        # parent:   index of the parent's row; nil at depth 0
        # children: number of children shown
        Row = Struct.new(:node, :last, :frames, :depth, :parent, :children)

        # Smallest share of all that counts, for a row.
        LEAST = 0.004
        # Most frames that are looked at, for each row.
        FRAMES = 8
        # Fewest frames that become one row, and the most of all that counts that such a frame may have alone.
        CHAIN = 3
        ALONE = 0.02
        private_constant :LEAST, :FRAMES, :CHAIN, :ALONE

        # @param limit [Integer] most rows
        #: (Result, limit: Integer) -> Array[Row]
        def self.rows(result, limit:)
          counts = counts(result)
          order = order(result, counts, limit * FRAMES)
          low = [limit, order.size].min
          high = order.size
          while low < high
            middle = (low + high + 1) / 2
            drawn(result, counts, order.first(middle)).size <= limit ? low = middle : high = middle - 1
          end
          drawn(result, counts, order.first(low))
        end

        # By node: how much of the difference is at and below it.
        def self.counts(result)
          size = result.paths.size
          changed = Array.new(size) { |node| result.structural?(node) ? result.own_change(node).abs : 0 }
          other = Array.new(size) { |node| result.structural?(node) ? 0 : result.own_change(node) }
          sums = result.paths.subtrees(changed).zip(result.paths.subtrees(other))
          sums.map { |structure, rest| structure + rest.abs }
        end
        private_class_method :counts

        # Nodes in the order in which they are worth a row. Each stands behind its parent.
        def self.order(result, counts, most)
          least = [counts[0] * LEAST, 1].max
          children = result.paths.children
          waiting = children[0].dup
          order = []
          until waiting.empty? || order.size == most
            node = waiting.max_by { |one| [counts[one], -one] }
            waiting.delete(node)
            break if counts[node] < least && order.any?

            order << node
            waiting.concat(children[node].select { |child| counts[child] >= least })
          end
          order
        end
        private_class_method :order

        def self.drawn(result, counts, nodes)
          below = nodes.group_by { |node| result.paths.parents[node] }
          below.each_value do |list|
            list.sort_by! { |node| [result.presence(node) == :new ? 0 : 1, -counts[node], node] }
          end
          rows = []
          stack = below.fetch(0, []).reverse.map { |node| [node, 0, nil] }
          until stack.empty?
            node, depth, parent = stack.pop
            chain = chain(result, counts, below, node)
            rows[parent].children += 1 if parent
            at = rows.size
            rows << Row.new(node, (chain.last if chain.size > 1), chain.size, depth, parent, 0)
            below.fetch(chain.last, []).reverse_each { |child| stack << [child, depth + 1, at] }
          end
          rows
        end
        private_class_method :drawn

        # A node and those below it that share its row.
        def self.chain(result, counts, below, node)
          chain = [node]
          most = counts[0] * ALONE
          while (only = below[chain.last]) && only.size == 1
            child = only.first
            break if result.presence(child) != result.presence(node) || result.moved.key?(child)
            break if counts[chain.last] - counts[child] > most || result.verdicts[child] != result.verdicts[node]

            chain << child
          end
          chain.size >= CHAIN ? chain : [node]
        end
        private_class_method :chain
      end
    end
  end
end
