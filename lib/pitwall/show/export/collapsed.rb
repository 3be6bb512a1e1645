# frozen_string_literal: true

require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # Collapsed stacks, as flamegraph.pl and inferno read them: `main;Shop#sum;Array#each 1200`, one line a stack, the root
      # first. Values are ns for wall and cpu, which keeps the sum exact.
      class Collapsed < Format
        #: () -> bool
        def self.folds? = true

        # Semicolons part frames and a line ends a stack.
        #: (String) -> String
        def self.name_of(name)
          safe = name.tr(";", ":").gsub(/[[:cntrl:]]/, " ").strip
          safe.empty? ? "(anonymous)" : safe
        end

        #: (Analyse::Report) -> void
        def initialize(report)
          super()
          @tree = report.tree
          @weight = report.weight
        end

        # @param out [#<<] gets the lines
        #: (untyped) -> void
        def write(out)
          names = @tree.methods.map { |method| self.class.name_of(method.name) }
          sums = Hash.new(0)
          @tree.selfs(@weight).each_with_index do |own, node|
            sums[stack(node, names)] += own unless own.zero?
          end
          sums.each { |stack, own| out << stack << " " << own.to_s << "\n" }
        end

        private

        # Equal methods at other lines are one stack here.
        def stack(node, names)
          path = []
          while node.positive?
            path << names[@tree.node_methods[node]]
            node = @tree.parents[node]
          end
          path.reverse!.join(";")
        end
      end
    end
  end
end
