# frozen_string_literal: true

module Pitwall
  module Analyse
    class ProfileChange
      # The way up from a changed method through which most of its change comes.
      class Callers
        # A caller, and how much of the method's weight came through it (and through the callers below it) on each side.
        Step = Struct.new(:name, :path, :a, :b) do
          #: () -> Float
          def change = b - a
        end

        # A caller is followed as long as this much of the method's change comes through it.
        MOST = 0.5
        private_constant :MOST

        #: (Array[Array[Run]], Array[Array[Numeric]], Names) -> void
        def initialize(sides, divisors, names)
          @sides = sides
          @divisors = divisors
          @names = names
        end

        # @return [Array<Step>] the method's caller first; empty where it is a root or its change is spread over many callers
        #: (Symbol, Integer) -> Array[Step]
        def path(kind, number)
          items = @sides.each_index.flat_map { |side| @sides[side].each_index.flat_map { |run| places(kind, number, side, run) } }
          change = items.sum { |item| signed(item) }
          steps = []
          below = number
          until change.zero?
            items = climb(items, below)
            caller, items = items.group_by { |part, node,| part.keys[node] }.max_by { |_, group| group.sum { |item| signed(item) } / change }
            break if caller.nil? || caller.zero? || items.sum { |item| signed(item) } / change < MOST

            steps << step(caller, items)
            below = caller
          end
          steps
        end

        private

        # [part, node, weight, side] wherever the method is: for its own weight each node of it, else the outermost.
        def places(kind, number, side, at)
          run = @sides[side][at]
          scale = @divisors[side][at] * @sides[side].size
          run.parts.flat_map do |part|
            nodes = kind == :own ? part.keys.each_index.select { |node| part.keys[node] == number } : outermost(part, number)
            weights = kind == :own ? part.tree.selfs(run.weight) : part.tree.subtrees(run.weight)
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

        # To the next caller of another name: recursion is no step.
        def climb(items, below)
          items.filter_map do |part, node, weight, side|
            node = part.tree.parents[node]
            node = part.tree.parents[node] while node.positive? && part.keys[node] == below
            [part, node, weight, side] if node.positive?
          end
        end

        def signed(item) = item[3].zero? ? -item[2] : item[2]

        def step(number, items)
          a, b = [0, 1].map { |side| items.sum(0.0) { |item| item[3] == side ? item[2] : 0 } }
          Step.new(@names[number].name, @names[number].path, a, b)
        end
      end
    end
  end
end
