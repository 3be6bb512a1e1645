# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree_builder"
require "pitwall/analyse/threads/idle_threads"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    class ProfileChange
      # One recording in the comparison: the weights of its methods, by the numbers that both sides share (Names).
      class Run
        # A process.
        #
        # tree:   has only the weights that count
        # keys:   by node: the method's number; 0 for nodes that do not count. 0 also for methods of the file that
        #         defines a method of `within`: such a benchmark harness is part of the whole, but is not compared
        # inside: by node: whether it counts; nil if all count
        Part = Struct.new(:segment, :tree, :keys, :inside)

        # @return [Array<Part>] the processes
        attr_reader :parts
        # @return [Symbol]
        attr_reader :weight

        # @param within [Array<String>] names of methods: only code that runs inside them counts; empty: all code
        # @param labels [Hash{String => String}, nil] only samples with all of these labels count
        # @param more [Array<Symbol>] weights that the trees have beside `weight` and captures
        # @yield [CallTree] returns the tree to be compared
        #: (
        #    Array[Record::Segment], Names, Integer, weight: Symbol, within: Array[String],
        #    ?labels: Hash[String, String]?, ?more: Array[Symbol]
        #  ) ?{ (CallTree) -> CallTree } -> void
        def initialize(segments, names, side, weight:, within:, labels: nil, more: [])
          @weight = weight
          @selection = Selection.new(labels: labels, without: (IdleThreads.find(segments) unless labels))
          @names = names
          @parts = segments.map do |segment|
            tree = CallTreeBuilder.build([segment], @selection, weights: [weight, :captures, *more])
            tree = yield tree if block_given?
            numbers = tree.methods.each_with_index.map { |method, at| at.zero? ? 0 : names.number(method, side) }
            part(segment, tree, numbers, within)
          end
        end

        # Weight of all samples that count, in ns.
        #: () -> Integer
        def whole = @whole ||= @parts.sum { |part| part.tree.total(@weight) }

        # Number of captures of all samples that count.
        #: () -> Integer
        def captures = @captures ||= @parts.sum { |part| part.tree.total(:captures) }

        # Number of threads with samples that count, in all processes.
        #: () -> Integer
        def threads
          @parts.sum do |part|
            tallies = part.segment.tallies.select { |tally| @selection.tally?(part.segment, tally) }
            tallies.map(&:thread_id).uniq.size
          end
        end

        # By number: self weight of the method, in ns.
        #: () -> Array[Integer]
        def own = @own ||= sum { |part| part.tree.self_by(@weight, part.keys, @names.size) }

        # By number: total weight of the method, in ns.
        #: () -> Array[Integer]
        def total = @total ||= sum { |part| part.tree.total_by(@weight, part.keys, @names.size) }

        # Whether rows of a thread with a set of labels count.
        #: (Record::Segment, Integer, Integer) -> bool
        def row?(segment, thread_id, label_id)
          idle = @selection.without&.fetch(segment, nil)&.include?(thread_id)
          !idle && @selection.labels?(segment, label_id)
        end

        private

        def part(segment, tree, numbers, within)
          keys = tree.node_methods.map { |method| numbers[method] }
          return Part.new(segment, tree, keys) if within.empty?

          wanted = tree.methods.map { |method| within.include?(method.name) }
          inside = Array.new(tree.size, false)
          parents = tree.parents
          (1...tree.size).each { |node| inside[node] = inside[parents[node]] || wanted[tree.node_methods[node]] }
          harness = tree.methods.each_index.select { |at| wanted[at] }.map { |at| tree.methods[at].path } - [""]
          hidden = tree.methods.map { |method| harness.include?(method.path) }
          keys.each_index { |node| keys[node] = 0 unless inside[node] && !hidden[tree.node_methods[node]] }
          selfs = tree.weights.to_h do |weight|
            [weight, tree.selfs(weight).each_with_index.map { |own, node| inside[node] ? own : 0 }]
          end
          inner = CallTree.new(methods: tree.methods, parents: parents, node_methods: tree.node_methods,
                               lines: tree.lines, selfs: selfs)
          Part.new(segment, inner, keys, inside)
        end

        def sum(&block)
          @parts.map(&block).reduce { |sums, more| sums.zip(more).map(&:sum) } || Array.new(@names.size, 0)
        end
      end
    end
  end
end
