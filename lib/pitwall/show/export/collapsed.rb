# frozen_string_literal: true

module Pitwall
  module Show
    module Export
      # Collapsed stacks, as flamegraph.pl and inferno read them: `main;Shop#sum;Array#each 1200`, one line a stack, the root
      # first. Values are ns for wall and cpu, which keeps the sum exact.
      module Collapsed
        # @param out [#<<] gets the lines
        #: (Analyse::CallTree, Symbol, untyped) -> void
        def self.write(tree, weight, out)
          names = tree.methods.map { |method| name(method.name) }
          sums = Hash.new(0)
          tree.selfs(weight).each_with_index do |own, node|
            sums[stack(tree, node, names)] += own unless own.zero?
          end
          sums.each { |stack, own| out << stack << " " << own.to_s << "\n" }
        end

        # Semicolons part frames and a line ends a stack.
        #: (String) -> String
        def self.name(name)
          safe = name.tr(";", ":").gsub(/[[:cntrl:]]/, " ").strip
          safe.empty? ? "(anonymous)" : safe
        end

        # Equal methods at other lines are one stack here.
        def self.stack(tree, node, names)
          path = []
          while node.positive?
            path << names[tree.node_methods[node]]
            node = tree.parents[node]
          end
          path.reverse!.join(";")
        end
        private_class_method :stack
      end
    end
  end
end
