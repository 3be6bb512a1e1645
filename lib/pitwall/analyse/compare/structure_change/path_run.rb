# frozen_string_literal: true

module Pitwall
  module Analyse
    class StructureChange
      # One recording in the comparison: its weights by path. Takes the place of ProfileChange::Run where noise is
      # computed.
      class PathRun
        # @return [Array<ProfileChange::Run::Part>] the processes; keys are nodes of the paths
        attr_reader :parts
        # @return [Array<Integer>] by path: self weight in ns
        attr_reader :selfs
        # @return [Array<Integer>, nil] by path: calls; nil for samples
        attr_reader :calls
        # @return [Array<true, nil>] by path: whether the recording has it
        attr_reader :present

        # @param exact [Boolean] whether the recording is a trace
        #: (ProfileChange::Run, Paths, ProfileChange::Names, exact: bool) -> void
        def initialize(run, paths, names, exact:)
          @run = run
          @exact = exact
          @parts = run.parts.map do |part|
            part.class.new(part.segment, part.tree, paths.add_tree(part.tree, part.keys), part.inside)
          end
          left_out = run.parts.flat_map(&:keys).uniq.select { |key| key.positive? && names[key].name == NOT_TRACED }
          left_out = left_out.to_h { |key| [key, true] }
          @left_out = run.parts.map { |part| part.keys.map { |key| left_out.key?(key) } if left_out.any? && exact }
          add_up(paths)
        end

        # Gives paths new numbers.
        # @param nodes [Array<Integer>] by old number: the new one
        #: (Array[Integer], Paths) -> void
        def renumber(nodes, paths)
          @parts.each { |part| part.keys = part.keys.map { |node| nodes[node] } }
          had = @present
          add_up(paths)
          # Callers on the other side's path are none of this recording's.
          @present = Array.new(paths.size)
          had.each_with_index { |present, node| @present[nodes[node]] = true if present }
        end

        # Whether nothing is compared.
        #: () -> bool
        def empty? = @selfs.all?(&:zero?)

        #: () -> Symbol
        def weight = @run.weight

        #: () -> Integer
        def whole = @whole ||= @selfs.sum

        #: () -> Integer
        def captures = @run.captures

        # By path: weight with what is below it.
        #: () -> Array[Integer]
        def total = @total ||= @paths.subtrees(@selfs)

        #: (Record::Segment, Integer, Integer) -> bool
        def row?(segment, thread_id, label_id) = @run.row?(segment, thread_id, label_id)

        private

        def add_up(paths)
          @paths = paths
          @total = nil
          @selfs = Array.new(paths.size, 0)
          @calls = @exact ? Array.new(paths.size, 0) : nil
          seen = Array.new(paths.size, 0)
          @parts.each_with_index { |part, at| add_part(part, @left_out[at], seen) }
          @present = paths.subtrees(seen).map { |count| true if count.positive? }
          @present[0] = true
        end

        def add_part(part, left_out, seen)
          tree = part.tree
          times = tree.selfs(weight)
          waits = @exact && weight == :wall ? tree.selfs(:wait) : nil
          counts = @exact ? tree.selfs(:calls) : tree.selfs(:captures)
          part.keys.each_with_index do |node, at|
            next if left_out && left_out[at]

            own = times[at]
            own += waits[at] if waits
            @selfs[node] += own
            @calls[node] += counts[at] if @exact
            seen[node] += 1 if own.positive? || counts[at].positive?
          end
        end
      end
    end
  end
end
