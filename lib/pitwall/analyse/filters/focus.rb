# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/record/tally"

module Pitwall
  module Analyse
    # Keeps the samples whose stack contains a frame, with their whole stacks. Traced calls, allocation sites and system
    # calls are kept by their stacks, too. What has no stack stays: requests, collections, tests.
    class Focus
      OUT = "(out of focus)"

      # @param wanted [#call] frame → bool
      #: (^(Record::Frame?) -> bool) -> void
      def initialize(wanted)
        @wanted = wanted
      end

      # Changed copies of the segments.
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def call(segments) = segments.map { |segment| segment(segment) }

      private

      # By node: is the frame in its stack?
      def kept(segment)
        wanted = Hash.new { |known, id| known[id] = @wanted.call(segment.frames[id]) }
        parents = segment.parents
        kept = [false]
        (1...parents.size).each { |node| kept[node] = kept[parents[node]] || wanted[segment.node_frames[node]] }
        kept
      end

      def segment(segment)
        kept = kept(segment)
        gap = segment.parents.size
        number = (segment.frames.keys.max || 0) + 1
        homes = kept.each_with_index.map { |inside, node| inside ? node : gap }
        segment.with(
          **nodes(segment, number), gap: gap, unfiltered: segment.source,
          tallies: segment.tallies.filter_map { |tally| tally(tally, kept) },
          calls: calls(segment, kept), sites: segment.sites.select { |site| kept[site.node] },
          open_rows: segment.open_rows.map { |row| row.dup.tap { |copy| copy[2] = homes[row[2]] } },
          row_source: ->(&block) { segment.each_rows { |rows| block.call(rows.moved(homes)) } },
          syscall_totals: {}, syscall_source: syscalls(segment, kept)
        )
      end

      # One more node, for rows that are out of focus.
      def nodes(segment, number)
        { frames: segment.frames.merge(number => Record::Frame.new(number, OUT, "", 0, Record::Frame::PITWALL)),
          node_frames: segment.node_frames + [number], lines: segment.lines + [0], parents: segment.parents + [0] }
      end

      def tally(tally, kept)
        inside = Record::Tally.new(tally.thread_id, tally.state, kept.size + 1, tally.label_id)
        tally.each { |node, wall, cpu, captures| inside.add(node, wall, cpu, captures) if kept[node] }
        inside if inside.size.positive?
      end

      def calls(segment, kept)
        segment.calls.empty? ? segment.calls : segment.calls.select { |row| kept[row.node_id] }
      end

      def syscalls(segment, kept)
        return unless segment.syscall_rows?

        ->(_, &block) { segment.each_syscall { |call| block.call(call) if kept[call.node] } }
      end
    end
  end
end
