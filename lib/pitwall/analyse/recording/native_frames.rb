# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/record/tally"

module Pitwall
  module Analyse
    # Folds native frames, so that a recording shows what it would show without them.
    #
    # The weight of a native frame moves to the nearest caller that is not native. Nodes that then have the same caller,
    # method and line become one node. Native code that no other frame called becomes "(native code)". A process with
    # native frames only (a C program, from perf) keeps them.
    #
    # The module changes segments, so every view and every export shows the same.
    module NativeFrames
      OTHER = "(native code)"

      module_function

      # Changed copies of the segments that have native frames. The others are returned as they are.
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def fold(segments) = segments.map { |segment| folds?(segment) ? Fold.new(segment).segment : segment }

      # Changed copies of the segments, and a copy of the selection that refers to these segments.
      #: (Array[Record::Segment], Selection?) -> [Array[Record::Segment], Selection?]
      def narrow(segments, selection)
        changed = fold(segments)
        return [changed, selection] unless selection&.without

        without = segments.zip(changed).each_with_object({}.compare_by_identity) do |(old, new), all|
          all[new] = selection.without[old] if selection.without[old]
        end
        [changed, selection.dup.tap { |copy| copy.without = without }]
      end

      #: (Array[Record::Segment]) -> bool
      def any?(segments) = segments.any? { |segment| native?(segment) }

      #: (Record::Segment) -> bool
      def native?(segment) = segment.frames.each_value.any? { |frame| frame.kind == Record::Frame::NATIVE }

      # Has the segment both native frames and others?
      #: (Record::Segment) -> bool
      def folds?(segment)
        kinds = segment.frames.each_value.map(&:kind).uniq
        kinds.include?(Record::Frame::NATIVE) && kinds.intersect?([Record::Frame::RUBY, Record::Frame::C])
      end

      # Folds one segment.
      class Fold
        # @return [Array<Integer>] by node of the segment: its node in the folded segment
        attr_reader :targets

        #: (Record::Segment) -> void
        def initialize(segment)
          @segment = segment
          @parents = [0]
          @node_frames = [segment.node_frames[0]]
          @lines = [segment.lines[0]]
          @targets = fold
        end

        # The folded copy.
        #: () -> Record::Segment
        def segment
          @segment.with(
            frames: @frames || @segment.frames, node_frames: @node_frames, lines: @lines, parents: @parents,
            tallies: @segment.tallies.map { |tally| tally(tally) },
            calls: @segment.calls.map { |row| row.dup.tap { |copy| copy.node_id = @targets[row.node_id] } },
            sites: @segment.sites.map { |site| site.dup.tap { |copy| copy.node = @targets[site.node] } },
            open_rows: @segment.open_rows.map { |row| row.dup.tap { |copy| copy[2] = @targets[row[2]] } },
            queries: @segment.queries.transform_values { |query| query(query) },
            row_source: rows, syscall_source: syscalls
          )
        end

        private

        # Parents have lower numbers than their children.
        def fold
          native = Hash.new do |known, id|
            known[id] = @segment.frames[id]&.kind == Record::Frame::NATIVE
          end
          parents, frames, lines = @segment.parents, @segment.node_frames, @segment.lines
          targets = [0]
          known, places = {}, {} # small Integers as keys, which are quick
          outside = [] # native nodes without another frame above
          node = 0
          while (node += 1) < parents.size
            frame = frames[node]
            above = targets[parents[node]]
            if native[frame]
              targets << above
              outside << node if above.zero?
            else
              place = (places[frame << 32 | lines[node]] ||= places.size)
              targets << (known[above << 32 | place] ||= add(above, frame, lines[node]))
            end
          end
          outside.any? ? apart(targets, outside) : targets
        end

        def add(parent, frame, line)
          @parents << parent
          @node_frames << frame
          @lines << line
          @parents.size - 1
        end

        # Gives the native nodes that no other frame called a node of their own.
        def apart(targets, outside)
          number = (@segment.frames.keys.max || 0) + 1
          @frames = @segment.frames.merge(number => Record::Frame.new(number, OTHER, "", 0, Record::Frame::PITWALL))
          other = add(0, number, 0)
          outside.each { |node| targets[node] = other }
          targets
        end

        def tally(tally)
          moved = Record::Tally.new(tally.thread_id, tally.state, @parents.size, tally.label_id)
          tally.each { |node, wall, cpu, captures| moved.add(@targets[node], wall, cpu, captures) }
          moved
        end

        def query(query) = query.dup.tap { |copy| copy.node_id = @targets[query.node_id] }

        def rows = ->(&block) { @segment.each_rows { |rows| block.call(rows.moved(@targets)) } }

        def syscalls
          return unless @segment.syscall_rows?

          lambda do |_, &block|
            @segment.each_syscall { |call| block.call(call.dup.tap { |copy| copy.node = @targets[call.node] }) }
          end
        end
      end
      private_constant :Fold
    end
  end
end
