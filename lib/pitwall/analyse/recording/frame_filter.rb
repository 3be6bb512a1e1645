# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/record/tally"

module Pitwall
  module Analyse
    # Leaves frames out of stacks. The weight of a frame that is left out moves to the nearest caller that is shown.
    # Code below no such caller becomes "(other code)".
    #
    # The class changes segments, so every view and every export shows the same.
    class FrameFilter
      OTHER = "(other code)"

      # @param shown [#call] frame → bool
      #: (^(Record::Frame) -> bool) -> void
      def initialize(shown)
        @shown = shown
      end

      # Changed copies of the segments.
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments) = segments.map { |segment| segment(segment) }

      # Changed copies of the segments, and a copy of the selection that refers to these segments.
      #: (Array[Record::Segment], Selection) -> [Array[Record::Segment], Selection]
      def narrow(segments, selection)
        changed = call(segments)
        return [changed, selection] unless selection.without

        without = segments.zip(changed).each_with_object({}.compare_by_identity) do |(old, new), all|
          all[new] = selection.without[old] if selection.without[old]
        end
        [changed, selection.dup.tap { |copy| copy.without = without }]
      end

      # By node: the node that receives its weight. This is the node itself if it is shown, else the nearest
      # caller that is, else the node `other`. Node 0 stays node 0, because its stack is unknown.
      #: (Record::Segment, other: Integer) -> Array[Integer]
      def targets(segment, other:)
        shown = Hash.new { |known, id| known[id] = shown?(segment.frames[id]) }
        parents = segment.parents
        targets = [0]
        (1...parents.size).each do |node|
          next targets[node] = node if node == segment.gap

          above = targets[parents[node]]
          above = other if above.zero?
          targets[node] = shown[segment.node_frames[node]] ? node : above
        end
        targets
      end

      private

      def shown?(frame) = @shown.call(frame || Record::Frame.unresolved(0))

      def segment(segment)
        other = segment.parents.size
        targets = targets(segment, other: other)
        number = (segment.frames.keys.max || 0) + 1
        frames = segment.frames.merge(number => Record::Frame.new(number, OTHER, "", 0, Record::Frame::PITWALL))
        segment.with(
          unfiltered: segment.source,
          frames: frames, node_frames: segment.node_frames + [number], lines: segment.lines + [0],
          parents: segment.parents.map { |parent| targets[parent] == other ? 0 : targets[parent] } + [0],
          tallies: segment.tallies.map { |tally| tally(tally, targets) }, calls: calls(segment, targets),
          sites: segment.sites.map { |site| site.dup.tap { |copy| copy.node = targets[site.node] } },
          open_rows: segment.open_rows.map { |row| row.dup.tap { |copy| copy[2] = targets[row[2]] } },
          row_source: ->(&block) { segment.each_rows { |rows| block.call(rows.moved(targets)) } },
          syscall_source: syscalls(segment, targets)
        )
      end

      def syscalls(segment, targets)
        return unless segment.syscall_rows?

        lambda do |_, &block|
          segment.each_syscall { |call| block.call(call.dup.tap { |copy| copy.node = targets[call.node] }) }
        end
      end

      def tally(tally, targets)
        moved = Record::Tally.new(tally.thread_id, tally.state, targets.size + 1, tally.label_id)
        tally.each { |node, wall, cpu, captures| moved.add(targets[node], wall, cpu, captures) }
        moved
      end

      # The result may have several rows of one thread and node. CallTreeBuilder adds them up.
      # Numbers of calls of other methods are dropped; their times move.
      def calls(segment, targets)
        return segment.calls if segment.calls.empty?

        segment.calls.map do |row|
          target = targets[row.node_id]
          row.dup.tap do |copy|
            same_method = segment.node_frames[row.node_id] == segment.node_frames[target]
            copy.calls = 0 unless target == row.node_id || same_method
            copy.node_id = target
          end
        end
      end
    end
  end
end
