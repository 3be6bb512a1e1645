# frozen_string_literal: true

require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # Collapsed stacks, for flamegraph.pl and inferno. A line is a stack with the root first, and its value:
      # `main;Shop#sum;Array#each 1200`. Values of wall and cpu are in ns, so that sums are exact.
      class Collapsed < Format
        #: () -> bool
        def self.folds? = true

        # A method's name without the format's separators: semicolons and line breaks.
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

        # Writes the stacks.
        # @param out [#<<] receives the lines
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

        # A node's stack. Nodes differ by line too, but stacks that differ only in lines become one stack.
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
