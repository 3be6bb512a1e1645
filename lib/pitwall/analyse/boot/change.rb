# frozen_string_literal: true

module Pitwall
  module Analyse
    class Boot
      # What differs between two boots: figures of the whole, and files.
      class Change
        # A file, or a step of a library. wall, objects: of itself, [of A, of B]; nil where it was not loaded
        # kind: as B loads it, else as A does
        Row = Struct.new(:path, :kind, :wall, :objects, :from, keyword_init: true) do
          # :new: only B loads it; :gone: only A; :both
          #: () -> Symbol
          def side
            return :new if wall[0].nil?

            wall[1].nil? ? :gone : :both
          end

          # Its part of the difference in time.
          #: () -> Integer
          def wall_change = wall[1].to_i - wall[0].to_i
        end

        # @return [Boot] A
        attr_reader :before
        # @return [Boot] B
        attr_reader :after

        #: (Boot, Boot) -> void
        def initialize(before, after)
          @before = before
          @after = after
        end

        # {wall: [1_200_000_000, 900_000_000], features: [2125, 1980], …}; without what one of them lacks
        #: () -> Hash[Symbol, [Integer, Integer]]
        def figures
          a, b = @before.figures, @after.figures
          a.keys.to_h { |name| [name, [a[name], b[name]]] }.reject { |_, pair| pair.include?(nil) }
        end

        # All files of both, the largest part of the difference in time first. A file has one row, even if A requires it
        # and B loads it by autoload.
        #: () -> Array[Row]
        def rows
          @rows ||= begin
            a, b = [@before, @after].map { |boot| by_file(boot) }
            (a.keys | b.keys).map { |key| row(a[key], b[key]) }
                             .sort_by { |row| [-row.wall_change.abs, row.path] }
          end
        end

        # Rows of a side.
        #: (Symbol) -> Array[Row]
        def of(side) = rows.select { |row| row.side == side }

        private

        # Loads that raised are left out.
        def by_file(boot)
          boot.nodes.select { |node| boot.main?(node) && !node.raised? }.group_by { |node| identity(node) }
        end

        # Steps without a file are told apart by their kind, too.
        def identity(node) = node.row.path.empty? ? [node.path, node.kind] : [node.path]

        def sums_of(nodes) = %i[wall objects].map { |name| nodes.sum { |node| node.own[name] } }

        def row(before, after)
          sums = [before, after].map { |nodes| nodes && sums_of(nodes) }
          first = (after || before).first
          Row.new(path: first.path, kind: first.kind, wall: sums.map { |sum| sum && sum[0] },
                  objects: sums.map { |sum| sum && sum[1] }, from: [first.row.from, first.row.line])
        end
      end
    end
  end
end
