# frozen_string_literal: true

require "pitwall/analyse/compare/profile_change"
require "pitwall/analyse/tree/folding"
require "pitwall/analyse/tree/method_match"

module Pitwall
  module Analyse
    # Compares the call paths of sides A and B: which paths only one side has, and which it calls more often.
    #
    # Paths are compared by the identity of their methods (ProfileChange::Names), and repeated parts of a path count
    # once (Paths). Work that both sides do under different callers (Moves) is put on B's path.
    #
    # Traces have exact numbers of calls. Of samples a path that one side lacks may be chance, so each path with at
    # least ProfileChange::LEAST of both sides together is tested, with Holm's correction, as ProfileChange tests
    # methods. Weights are means of the runs of a side. Garbage collection counts for the code that was running.
    class StructureChange
      autoload :Doubt, "pitwall/analyse/compare/structure_change/doubt"
      autoload :Groups, "pitwall/analyse/compare/structure_change/groups"
      autoload :Moves, "pitwall/analyse/compare/structure_change/moves"
      autoload :Outline, "pitwall/analyse/compare/structure_change/outline"
      autoload :PathRun, "pitwall/analyse/compare/structure_change/path_run"
      autoload :Paths, "pitwall/analyse/compare/structure_change/paths"

      # Name of the frame that stands for what a trace left out.
      NOT_TRACED = "(not traced)"

      # Result of a comparison. Lists are by node of `paths`, in pairs by side where two are named.
      #
      # exact:    whether the sides are traces, whose calls are counted
      # weight:   :wall or :cpu, in ns. Of traces wall includes waiting
      # runs:     number of recordings on each side
      # names:    methods by number (ProfileChange::Names)
      # selfs, totals: weight of the node, and with what is below it
      # calls:    calls of the node; nil for samples
      # present:  whether the side has the path
      # verdicts: :exact, :beyond (beyond noise), :chance (may be chance) or :small (too small to be tested)
      # moved:    node → the callers that it has on side A, the nearest first, as numbers of methods
      # shared:   whether any path is on both sides
      # notes:    what makes the sides hard to compare
      # reason:   why nothing could be compared, else nil
      Result = Struct.new(:exact, :weight, :runs, :names, :paths, :selfs, :totals, :calls, :present, :verdicts, :moved,
                          :shared, :notes, :reason, keyword_init: true) do
        # B − A of a node with what is below it.
        #: (Integer) -> Numeric
        def change(node) = totals[1][node] - totals[0][node]

        # B − A of a node alone.
        #: (Integer) -> Numeric
        def own_change(node) = selfs[1][node] - selfs[0][node]

        # :new if only B has the path, :gone if only A has it, else :both.
        #: (Integer) -> Symbol
        def presence(node)
          return :both if present[0][node] == present[1][node]

          present[1][node] ? :new : :gone
        end

        # The method of a node.
        #: (Integer) -> ProfileChange::Names::Name
        def method(node) = names[paths.numbers[node]]

        # Whether the two numbers of calls differ. Runs of one side may differ themselves, and are one number if so.
        #: (Integer) -> bool
        def counted?(node) = exact && calls[0][node] != calls[1][node] && verdicts[node] != :chance

        # Whether the node is not only a matter of time: its path, its calls, or beyond noise.
        #: (Integer) -> bool
        def structural?(node)
          return counted?(node) || presence(node) != :both if exact

          verdicts[node] == :beyond
        end
      end

      # Compares two sides.
      # @param a [ProfileChange::Side]
      # @param b [ProfileChange::Side]
      # @param weight [Symbol] :wall or :cpu
      # @param labels [Hash{String => String}, nil] only samples with all of these labels count
      # @param blackbox [Array<String | MethodMatch::Set>] methods whose callees are folded into them
      # @param level [Float] 1 − the probability of any false alarm
      # @raise [UsageError] no method has a name of blackbox
      #: (
      #    a: ProfileChange::Side, b: ProfileChange::Side, ?weight: Symbol, ?labels: Hash[String, String]?,
      #    ?blackbox: Array[untyped], ?level: Float
      #  ) -> Result
      def self.compare(a:, b:, weight: :wall, labels: nil, blackbox: [], level: 0.95)
        new([a, b], weight, labels, blackbox, level).result
      end

      #: (Array[ProfileChange::Side], Symbol, Hash[String, String]?, Array[untyped], Float) -> void
      def initialize(sides, weight, labels, blackbox, level)
        @weight = weight
        @level = level
        segments = sides.map { |side| side.recordings.flatten }
        @exact = segments.flatten.any?(&:traced?) && segments.flatten.none?(&:sampled?)
        @walks = segments.flatten.map { |segment| segment.header.walk }.uniq
        @names = ProfileChange::Names.new(sides.map(&:base), blocks: @walks.size == 1)
        @paths = Paths.new
        found = {}
        @runs = sides.each_with_index.map do |side, at|
          side.recordings.map do |recording|
            run = ProfileChange::Run.new(recording, @names, at, weight: weight, within: [], labels: labels,
                                                                more: @exact ? %i[calls wait] : []) do |tree|
              folded(tree, blackbox, found)
            end
            PathRun.new(run, @paths, @names, exact: @exact)
          end
        end
        missing = blackbox.find { |name| !found[name] }
        raise UsageError, "no method #{missing.to_s.inspect} in the recordings" if missing && @runs.flatten.any?
      end

      # The comparison's result.
      #: () -> Result
      def result
        reason = obstacle
        return Result.new(exact: @exact, weight: @weight, runs: @runs.map(&:size), notes: [], reason: reason) if reason

        moved = place
        Result.new(exact: @exact, weight: @weight, runs: @runs.map(&:size), names: @names, paths: @paths,
                   selfs: means(:selfs), totals: means(:selfs).map { |selfs| @paths.subtrees(selfs) },
                   calls: (means(:calls) if @exact), present: present, verdicts: verdicts, moved: moved,
                   shared: (1...@paths.size).any? { |node| present.all? { |side| side[node] } }, notes: notes)
      end

      private

      def folded(tree, blackbox, found)
        numbers = blackbox.flat_map do |name|
          list = MethodMatch.find(tree.methods, name)
          found[name] = true
          list
        rescue UsageError
          []
        end
        tree = Folding.gc_to_caller(tree)
        numbers.empty? ? tree : Folding.blackbox(tree, numbers)
      end

      def obstacle
        empty = @runs.index { |runs| runs.empty? || runs.any?(&:empty?) }
        return if empty.nil?

        "side #{%w[A B][empty]} has a recording without any #{@exact ? "call" : "sample"} of what is compared"
      end

      def notes
        return [] if @walks.size < 2

        ["one side's Ruby can't tell a block from its method: blocks count for their methods on both"]
      end

      # Puts work of both sides with different callers on one path.
      # @return [Hash{Integer => Array<Integer>}] as Result#moved
      def place
        moves = Moves.new(@paths, means(@exact ? :calls : :selfs), present).to_h
        old = @paths
        @paths, nodes = old.moved(moves)
        @runs.flatten.each { |run| run.renumber(nodes, @paths) } unless moves.empty?
        @means = @present = nil
        moves.to_h { |gone, came| [nodes[came], old.upwards(old.parents[gone]).map { |node| old.numbers[node] }] }
      end

      # By side and node: mean of the runs. Exact if there is one run.
      def means(kind)
        (@means ||= {})[kind] ||= @runs.map do |runs|
          lists = runs.map(&kind)
          lists.each { |list| list.concat(Array.new(@paths.size - list.size, 0)) }
          runs.one? ? lists.first : lists.transpose.map { |values| values.sum.fdiv(runs.size) }
        end
      end

      def present
        @present ||= @runs.map do |runs|
          lists = runs.map(&:present)
          Array.new(@paths.size) { |node| lists.any? { |list| list[node] } }
        end
      end

      def verdicts
        return exact_verdicts if @exact

        Doubt.new(@runs, @paths, level: @level).verdicts
      end

      # Numbers of calls that differ between runs of one side, and overlap with those of the other, are no difference.
      def exact_verdicts
        return Array.new(@paths.size, :exact) if @runs.all?(&:one?)

        a, b = @runs.map { |runs| runs.map(&:calls).transpose.map(&:minmax) }
        a.zip(b).map { |(low, high), (least, most)| low > most || least > high || low == high ? :exact : :chance }
      end
    end
  end
end
