# frozen_string_literal: true

require "pitwall/analyse/syscalls/path_counts"

module Pitwall
  module Analyse
    module Syscalls
      # Sums up the output of the chains: markers by pattern, and the calls that no pattern absorbed.
      class Tally
        # Sums of one pattern.
        #
        # markers, calls, ns: number of markers, of absorbed calls, and their time
        # explaining, explained: markers of two calls or more, and their calls
        # sizes: calls of a marker => number of such markers
        # paths: PathCounts
        # nodes: [segment, node] => [calls, ns]
        Pass = Struct.new(:pattern, :markers, :calls, :ns, :explaining, :explained, :sizes, :paths, :nodes)
        # Largest exact size of a marker. Larger sizes are rounded up to a power of two.
        SIZES = 4096
        private_constant :SIZES

        # passes: a Pass for each pattern. rest_…: calls that no pattern absorbed: by kind, their ns, paths and stacks.
        attr_reader :passes, :rest_kinds, :rest_ns, :rest_paths, :rest_nodes
        # Number of the source of the next calls.
        attr_writer :segment

        # @param collapsed [#call, nil] gets each line of the collapsed log
        def initialize(patterns, collapsed: nil)
          @passes = patterns.map { |pattern| Pass.new(pattern, 0, 0, 0, 0, 0, {}, PathCounts.new, {}) }
          @collapsed = collapsed
          @rest_kinds = []
          @rest_ns = 0
          @rest_paths = PathCounts.new
          @rest_nodes = {}
        end

        # Adds a call that no pattern absorbed.
        #: (Record::Syscall, Integer) -> void
        def rest(call, kind)
          @rest_kinds[kind] = (@rest_kinds[kind] || 0) + 1
          path = call.path
          ns = call.ns
          @rest_paths.add(path, 1, ns) if path
          @rest_ns += ns if ns
          add(@rest_nodes, call.node, 1, ns) if call.node
          @collapsed&.call(path ? "#{call.name}\t#{path}" : call.name)
        end

        # Adds a marker.
        #: (Marker) -> void
        def marker(marker)
          pass = @passes[marker.at]
          count = marker.count
          pass.markers += 1
          pass.calls += count
          pass.ns += marker.ns if marker.ns
          size = count > SIZES ? 1 << (count - 1).bit_length : count
          pass.sizes[size] = (pass.sizes[size] || 0) + 1
          if count > 1 || pass.pattern.repeats?
            pass.explaining += 1
            pass.explained += count
          end
          pass.paths.add(marker.path, count, marker.ns)
          marker.nodes&.each { |node, (calls, ns)| add(pass.nodes, node, calls, ns) }
          @collapsed&.call(text(pass.pattern, marker))
        end

        # The sums as plain values, for another process.
        #: () -> Array[untyped]
        def part
          passes = @passes.map do |pass|
            [pass.markers, pass.calls, pass.ns, pass.explaining, pass.explained, pass.sizes, pass.paths.dump]
          end
          [@rest_paths.dump, passes]
        end

        # Adds the result of {part} of another tally.
        #: (Array[untyped], Integer) -> void
        def merge(part, rest_ns)
          @rest_ns += rest_ns
          @rest_paths.load(part[0])
          @passes.zip(part[1]) do |pass, (markers, calls, ns, explaining, explained, sizes, paths)|
            pass.markers += markers
            pass.calls += calls
            pass.ns += ns
            pass.explaining += explaining
            pass.explained += explained
            sizes.each { |size, count| pass.sizes[size] = pass.sizes.fetch(size, 0) + count }
            pass.paths.load(paths)
          end
        end

        private

        def add(nodes, node, calls, ns)
          found = nodes[[@segment, node]] ||= [0, 0]
          found[0] += calls
          found[1] += ns if ns
        end

        def text(pattern, marker)
          label = pattern.label(marker.path)
          pattern.counted? ? "#{pattern.name}\t#{label}\t#{marker.count}" : "#{pattern.name}\t#{label}"
        end
      end
    end
  end
end
