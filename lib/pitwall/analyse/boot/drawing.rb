# frozen_string_literal: true

require "pitwall/record/chunks"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    class Boot
      # Makes a boot a tree of calls, so that all that draws such trees draws it: a file is a method, and what it took
      # itself is what its calls took. The flame graph of the page then shows a boot by time, objects or memory.
      module Drawing
        TRACING = { "cpu" => true, "objects" => true, "bytes" => true }.freeze
        private_constant :TRACING

        module_function

        # The segment itself if it has samples or calls of its own, or no loads.
        #: (Record::Segment) -> Record::Segment
        def call(segment)
          return segment if segment.loads.empty? || segment.tallies.any? || segment.traced?

          nodes = Tree.new(segment.loads).nodes
          numbers = nodes.each_with_index.to_h { |node, at| [node.row.id, at + 1] }
          files = nodes.map { |node| name(node) }.uniq
          ids = files.each_with_index.to_h { |file, at| [file, at + 1] }
          segment.with(
            frames: ids.to_h { |(name, path), id| [id, Record::Frame.new(id, name, path, 0, Record::Frame::RUBY)] },
            parents: [0, *nodes.map { |node| node.parent ? numbers.fetch(node.parent.row.id) : 0 }],
            node_frames: [0, *nodes.map { |node| ids.fetch(name(node)) }], lines: [0] * (nodes.size + 1),
            calls: Record::Calls.new(numbers.values.zip(nodes).to_h { |id, node| [id, row(id, node)] }),
            tracing: TRACING
          )
        end

        def row(id, node)
          own = node.own
          Record::Calls::Row.new(node.row.thread, id, 1, own[:wall], 0, own[:cpu], 0, own[:objects], own[:bytes])
        end
        private_class_method :row

        # [name, path]: ["active_support/json.rb", "/gems/activesupport-7.2.4/lib/active_support/json.rb"]
        def name(node)
          path = node.path
          short = path[%r{/(?:lib|app|gems)/((?:[^/]+/)*[^/]+)\z}, 1] || File.basename(path)
          kind = %w[require require_relative].include?(node.kind) ? "" : "#{node.kind} "
          ["#{kind}#{short}".strip, node.row.path]
        end
        private_class_method :name
      end
    end
  end
end
