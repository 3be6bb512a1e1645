# frozen_string_literal: true

module Pitwall
  module Analyse
    class Boot
      # Figures of a load, all with what it loaded itself. calls: file-system calls; 0 where they were not recorded.
      FIGURES = %i[wall cpu gc objects bytes rss calls].freeze

      # A load in the tree of a boot.
      class Node
        # @return [Record::Load]
        attr_reader :row
        # @return [Node, nil]
        attr_reader :parent
        # @return [Array<Node>] in the order in which they began
        attr_reader :children
        # @return [Hash{Symbol => Integer}] {wall: ns, cpu: ns, gc: ns, objects:, bytes:, rss: bytes (may be negative),
        #   calls:}
        attr_reader :total
        # @return [Hash{Symbol => Integer}] the same without what its children took
        attr_accessor :own

        # How many different files these nodes have loaded. Evaluated strings do not count.
        #: (Array[Node]) -> Integer
        def self.files(nodes) = nodes.select(&:file?).map(&:path).uniq.size

        # The nodes that have no node above them in the list.
        #: (Array[Node]) -> Array[Node]
        def self.outermost(nodes)
          inside = nodes.to_h { |node| [node, true] }.compare_by_identity
          nodes.reject { |node| node.above.any? { |above| inside.key?(above) } }
        end

        #: (Record::Load, Node?, Hash[Symbol, Integer]) -> void
        def initialize(row, parent, total)
          @row = row
          @parent = parent
          @total = total
          @children = []
          parent&.children&.push(self)
        end

        # The file, or how it was asked for: "/srv/app/lib/cart.rb", "set"
        #: () -> String
        def path = row.path.empty? ? row.name : row.path

        # "extension" for compiled code, "routes" for Rails' routes, else the kind of the row.
        #: () -> String
        def kind
          return "extension" if row.path.match?(/\.(?:so|bundle|dll)\z/)
          return "routes" if row.kind == "load" && row.path.match?(%r{/config/routes(?:\.rb|/[^/]+\.rb)\z})

          row.kind
        end

        # Is it code of a file, or code that is evaluated under a file's name?
        #: () -> bool
        def code? = %w[require require_relative load autoload eval].include?(row.kind)

        # Is it a file of code that was loaded?
        #: () -> bool
        def file? = code? && row.kind != "eval" && loaded?

        # Did the load come to its end without an exception?
        #: () -> bool
        def loaded? = row.ending.zero?

        #: () -> bool
        def raised? = row.ending == 2

        # Did its code or data come from a cache? nil: none was asked, or it could not be loaded.
        #: () -> bool?
        def cached? = row.cache.empty? || raised? ? nil : Cached.hit?(self)

        # Time until its code was compiled: to find, to read and to compile it.
        #: () -> Integer
        def compile_ns = [row.compile_ns, [own[:wall], 0].max].min

        # The node and all below it.
        #: () -> Array[Node]
        def subtree = [self, *children.flat_map(&:subtree)]

        # The nodes above, the nearest first.
        #: () -> Array[Node]
        def above
          found = []
          node = self
          found << node while (node = node.parent)
          found
        end
      end

      # The loads of one process as a tree.
      class Tree
        # @return [Array<Node>] loads that were not within another
        attr_reader :roots
        # @return [Array<Node>] in the order in which they began
        attr_reader :nodes

        # @param calls [Hash{Integer => Integer}] file-system calls of each load itself, by its id
        #: (Array[Record::Load], ?calls: Hash[Integer, Integer]) -> void
        def initialize(loads, calls: {})
          @calls = calls
          by_id = {}
          @nodes = loads.sort_by(&:id).map do |load|
            by_id[load.id] = Node.new(load, by_id[load.parent], totals(load))
          end
          @roots = @nodes.select { |node| node.parent.nil? }
          @nodes.reverse_each { |node| add_up(node) }
        end

        private

        def totals(load)
          { wall: load.wall_ns, cpu: load.cpu_ns, gc: load.gc_ns, objects: load.objects, bytes: load.bytes,
            rss: load.rss_after - load.rss_before, calls: 0 }
        end

        # Times never fall below 0: a load of another thread that had not ended has no CPU time.
        def add_up(node)
          calls = @calls.fetch(node.row.id, 0)
          node.total[:calls] = calls + node.children.sum { |child| child.total[:calls] }
          node.own = FIGURES.to_h do |name|
            left = node.total[name] - node.children.sum { |child| child.total[name] }
            [name, name == :rss ? left : [left, 0].max]
          end
        end
      end
    end
  end
end
