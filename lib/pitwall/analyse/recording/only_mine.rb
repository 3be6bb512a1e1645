# frozen_string_literal: true

require "pitwall/analyse/recording/origin"
require "pitwall/record/frame"
require "pitwall/record/tally"

module Pitwall
  module Analyse
    # Recordings that show the application's code only. The weight of every other frame goes to the application's frame
    # that called it. Garbage collection keeps its own frames. What no frame of the application called is
    # "(other code)".
    #
    # Works on segments, so every view and every export shows the same.
    class OnlyMine
      OTHER = "(other code)"
      #: (Origin) -> void
      def initialize(origin)
        @origin = origin
      end

      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments) = segments.map { |segment| segment(segment) }

      # The same, with a selection whose segments are these.
      #: (Array[Record::Segment], Selection) -> [Array[Record::Segment], Selection]
      def narrow(segments, selection)
        found = call(segments)
        return [found, selection] unless selection.without

        without = segments.zip(found).each_with_object({}.compare_by_identity) do |(old, new), all|
          all[new] = selection.without[old] if selection.without[old]
        end
        [found, selection.dup.tap { |copy| copy.without = without }]
      end

      # By node the node that its weight goes to: itself, the nearest caller that is the application's, or other.
      # Node 0 stays: nothing is known of its stack.
      #: (Record::Segment, other: Integer) -> Array[Integer]
      def homes(segment, other:)
        kept = Hash.new { |known, id| known[id] = keep?(segment.frames[id]) }
        parents = segment.parents
        homes = [0]
        (1...parents.size).each do |node|
          above = homes[parents[node]]
          above = other if above.zero?
          homes[node] = kept[segment.node_frames[node]] ? node : above
        end
        homes
      end

      private

      def keep?(frame) = !frame.nil? && (frame.kind == Record::Frame::GC || @origin.mine?(frame))

      def segment(segment)
        other = segment.parents.size
        homes = homes(segment, other: other)
        number = (segment.frames.keys.max || 0) + 1
        frames = segment.frames.merge(number => Record::Frame.new(number, OTHER, "", 0, Record::Frame::PITWALL))
        segment.with(
          frames: frames, node_frames: segment.node_frames + [number], lines: segment.lines + [0],
          parents: segment.parents.map { |parent| homes[parent] == other ? 0 : homes[parent] } + [0],
          tallies: segment.tallies.map { |tally| tally(tally, homes) }, calls: calls(segment, homes),
          sites: segment.sites.map { |site| site.dup.tap { |copy| copy.node = homes[site.node] } },
          open_rows: segment.open_rows.map { |row| row.dup.tap { |copy| copy[2] = homes[row[2]] } },
          row_source: ->(&block) { segment.each_rows { |rows| block.call(rows.moved(homes)) } },
          syscall_source: syscalls(segment, homes)
        )
      end

      def syscalls(segment, homes)
        return unless segment.syscall_rows?

        lambda do |_, &block|
          segment.each_syscall { |call| block.call(call.dup.tap { |copy| copy.node = homes[call.node] }) }
        end
      end

      def tally(tally, homes)
        moved = Record::Tally.new(tally.thread_id, tally.state, homes.size + 1, tally.label_id)
        tally.each { |node, wall, cpu, captures| moved.add(homes[node], wall, cpu, captures) }
        moved
      end

      # There may now be several rows of one thread and node: CallTreeBuilder adds them up. Calls of other methods are
      # nobody's.
      def calls(segment, homes)
        return segment.calls if segment.calls.empty?

        segment.calls.map do |row|
          home = homes[row.node_id]
          row.dup.tap do |copy|
            copy.calls = 0 unless home == row.node_id || segment.node_frames[row.node_id] == segment.node_frames[home]
            copy.node_id = home
          end
        end
      end
    end
  end
end
