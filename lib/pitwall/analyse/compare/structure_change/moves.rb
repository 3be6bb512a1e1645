# frozen_string_literal: true

module Pitwall
  module Analyse
    class StructureChange
      # Finds work that both sides do under different callers. Side A has it on paths that B lacks, and B on paths that
      # A lacks. Such work is no difference: only the callers are. An integration test reaches the controller's action
      # through Rack and the router, for example, and a controller test calls it at once.
      #
      # Two subtrees are the same work if they begin with the same method, and a large part of their weight is on the
      # same paths below it. The pair with most weight in common is found first.
      class Moves
        # Smallest share of the whole that a subtree must have to be compared.
        LEAST = 0.005
        # Smallest share of the lighter subtree that must be common to both.
        ALIKE = 0.3
        # Most subtrees of one method on each side, most pairs, and most nodes that are visited.
        SAME_METHOD = 6
        MOST = 40
        VISITS = 1_000_000
        private_constant :LEAST, :ALIKE, :SAME_METHOD, :MOST, :VISITS

        # @param paths [Paths]
        # @param selfs [Array<Array<Numeric>>] by side and node: self weight
        # @param present [Array<Array<Boolean>>] by side and node: whether the side has the path
        #: (Paths, Array[Array[Numeric]], Array[Array[bool]]) -> void
        def initialize(paths, selfs, present)
          @paths = paths
          @selfs = selfs
          @totals = selfs.map { |weights| paths.subtrees(weights) }
          @present = present
          @least = @totals.map(&:first).max * LEAST
          @common = {}
          @visits = 0
        end

        # Node on A's paths → node on B's paths.
        #: () -> Hash[Integer, Integer]
        def to_h
          moves = {}
          taken = {}
          pairs = pairs()
          while moves.size < MOST
            pairs.reject! { |pair| pair.any? { |node| taken.key?(node) } }
            gone, came = best(pairs) || break
            moves[gone] = came
            [gone, came].each { |node| take(taken, node) }
          end
          moves
        end

        private

        # Pairs of nodes with the same method, those that may have most weight in common first, callers before callees.
        def pairs
          gone, came = [0, 1].map { |side| alone(side) }
          pairs = (gone.keys & came.keys).flat_map { |number| gone[number].product(came[number]) }
          pairs.sort_by { |a, b| [-bound(a, b), a, b] }
        end

        # Number of a method → its heaviest nodes that only this side has.
        def alone(side)
          present, other = @present.values_at(side, 1 - side)
          nodes = (1...@paths.size).select do |node|
            present[node] && !other[node] && @totals[side][node] >= @least
          end
          groups = nodes.group_by { |node| @paths.numbers[node] }
          groups.transform_values { |list| list.max_by(SAME_METHOD) { |node| [@totals[side][node], -node] } }
        end

        def bound(a, b) = [@totals[0][a], @totals[1][b]].min

        # The pair with most weight in common; nil if none has enough.
        def best(pairs)
          most = [@least, 1].max - 1
          found = nil
          pairs.each do |pair|
            break if bound(*pair) <= most
            next if inside?(pair)

            common = (@common[pair] ||= common(*pair))
            next if common <= most || common < bound(*pair) * ALIKE

            most = common
            found = pair
          end
          found
        end

        # Whether the callers are a pair as well, of which this pair is a part.
        def inside?(pair)
          above = pair.map { |node| @paths.parents[node] }
          common = @common[above]
          common && common >= bound(*above) * ALIKE
        end

        # Weight on paths that are equal below both nodes.
        def common(a, b)
          sum = 0
          stack = [a, b]
          until stack.empty? || @visits > VISITS
            @visits += 1
            b = stack.pop
            a = stack.pop
            sum += [@selfs[0][a], @selfs[1][b]].min
            @paths.children[a].each do |node|
              twin = @paths.child_if_any(b, @paths.numbers[node])
              stack.push(node, twin) if twin && bound(node, twin).positive?
            end
          end
          sum
        end

        # Marks a node with what is above and below it.
        def take(taken, node)
          stack = [node]
          until stack.empty?
            at = stack.pop
            taken[at] = true
            stack.concat(@paths.children[at])
          end
          @paths.upwards(node).each { |above| taken[above] = true if alone?(above) }
        end

        def alone?(node) = @present[0][node] != @present[1][node]
      end
    end
  end
end
