# frozen_string_literal: true

module Pitwall
  module Analyse
    class ProfileChange
      # The path of callers through which most of a method's change comes.
      class Callers
        # A caller. a, b: weight of the method that came through this caller and the callers below it, on each side.
        Step = Struct.new(:name, :path, :a, :b) do
          # B − A.
          #: () -> Float
          def change = b - a
        end

        # The path ends where less than this share of the method's change comes through one caller.
        MOST = 0.5
        private_constant :MOST

        #: (Array[Array[Run]], Array[Array[Numeric]], Names) -> void
        def initialize(sides, divisors, names)
          @sides = sides
          @divisors = divisors
          @names = names
        end

        # The path from a method to the root.
        # @return [Array<Step>] the method's caller first; empty for a root, or if many callers share the change
        #: (Symbol, Integer) -> Array[Step]
        def path(kind, number)
          items = @sides.each_with_index.flat_map do |runs, side|
            runs.each_index.flat_map { |run| places(kind, number, side, run) }
          end
          change = items.sum { |item| signed(item) }
          steps = []
          below = number
          until change.zero?
            items = climb(items, below)
            groups = items.group_by { |part, node,| part.keys[node] }
            caller, items = groups.max_by { |_, group| group.sum { |item| signed(item) } / change }
            break if caller.nil? || caller.zero? || items.sum { |item| signed(item) } / change < MOST

            steps << step(caller, items)
            below = caller
          end
          steps
        end

        private

        # [part, node, weight, side] of the method's nodes: all of them for the self weight, else the outermost ones.
        def places(kind, number, side, at)
          run = @sides[side][at]
          scale = @divisors[side][at] * @sides[side].size
          run.parts.flat_map do |part|
            if kind == :own
              nodes = part.keys.each_index.select { |node| part.keys[node] == number }
              weights = part.tree.selfs(run.weight)
            else
              nodes = outermost(part, number)
              weights = part.tree.subtrees(run.weight)
            end
            nodes.filter_map { |node| [part, node, weights[node].fdiv(scale), side] unless weights[node].zero? }
          end
        end

        def outermost(part, number)
          parents = part.tree.parents
          inside = Array.new(part.tree.size, false)
          (1...part.tree.size).select do |node|
            here = part.keys[node] == number
            found = here && !inside[parents[node]]
            inside[node] = here || inside[parents[node]]
            found
          end
        end

        # Moves each item to the next caller with another number, because recursion is no step.
        def climb(items, below)
          items.filter_map do |part, node, weight, side|
            node = part.tree.parents[node]
            node = part.tree.parents[node] while node.positive? && part.keys[node] == below
            [part, node, weight, side] if node.positive?
          end
        end

        # Weight with the sign of its side in B − A.
        def signed(item) = item[3].zero? ? -item[2] : item[2]

        def step(number, items)
          a, b = [0, 1].map { |side| items.sum(0.0) { |item| item[3] == side ? item[2] : 0 } }
          Step.new(@names[number].name, @names[number].path, a, b)
        end
      end
    end
  end
end
