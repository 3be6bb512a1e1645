# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Makes one CallTree of the segments of a recording. Methods are the same when name, path, first line and kind are.
    # Times come from samples where there are any, else from traced calls, whose probes' own cost is taken off.
    class CallTreeBuilder
      # Where a weight stands in a tally's cells.
      CELLS = { wall: 0, cpu: 1, captures: 2 }.freeze
      WEIGHTS = CELLS.keys.freeze
      # What a site of allocation weighs: its objects and their bytes, and ns of garbage collection that are charged to it.
      # Objects and bytes are the program's, as Allocations counts them; collection is charged to the VM and Pitwall as well.
      SITE_WEIGHTS = { objects: :count, bytes: :bytes, gc: :gc_ns }.freeze
      # What traced calls have.
      CALL_WEIGHTS = %i[wall cpu calls wait objects bytes].freeze
      ROOT = MethodInfo.new("(root)", "", 0, 4).freeze
      # Rows at node 0: a thread whose stack could not be read.
      NO_STACK = MethodInfo.new("(no stack)", "", 0, 4).freeze

      # @param weights [Array<Symbol>] :wall, :cpu and :wait in ns, :captures, :calls, :objects, :bytes, :gc in ns
      #: (Array[Record::Segment], ?Selection, ?weights: Array[Symbol]) -> CallTree
      def self.build(segments, selection = Selection.all, weights: WEIGHTS)
        builder = new(weights)
        segments.each { |segment| builder.add(segment, selection) if selection.segment?(segment) }
        builder.tree
      end

      #: (Array[Symbol]) -> void
      def initialize(weights)
        @methods = [ROOT, NO_STACK]
        @numbers = {}
        @parents = [0, 0]
        @node_methods = [0, 1]
        @lines = [0, 0]
        @selfs = weights.to_h { |weight| [weight, [0, 0]] }
        @cells, @site_weights, @call_weights = [CELLS.keys, SITE_WEIGHTS.keys, CALL_WEIGHTS].map { |known| @selfs.slice(*known) }
      end

      # Node k of a segment becomes node k + shift; its root's own weight goes to NO_STACK.
      # @return [Integer] shift
      #: (Record::Segment, Selection) -> Integer
      def add(segment, selection)
        shift = @parents.size - 1
        mains = dummies(segment)
        numbers = Hash.new { |known, frame_id| known[frame_id] = number(segment, mains.fetch(frame_id, frame_id)) }
        @parents.concat(parents(segment, mains).map! { |parent| parent.zero? ? 0 : parent + shift })
        @node_methods.concat(segment.node_frames.drop(1).map! { |frame_id| numbers[frame_id] })
        @lines.concat(segment.lines.drop(1))
        @selfs.each_value { |weights| weights.concat(Array.new(segment.parents.size - 1, 0)) }
        segment.tallies.each { |tally| weigh(tally, segment.unit_ns, shift) if selection.tally?(segment, tally) } if @cells.any?
        weigh_sites(segment, shift) if @site_weights.any? && selection.every_thread?
        segment.calls.each { |row| count(row, shift, segment) if selection.calls?(segment, row.thread_id) } if @call_weights.any?
        shift
      end

      #: () -> CallTree
      def tree
        CallTree.new(methods: @methods, parents: @parents, node_methods: @node_methods, lines: @lines, selfs: @selfs)
      end

      private

      # Below the dummy that Ruby up to 3.1 has at the root of the main thread, "<main>" at line 0, stands the real one.
      # @return [Hash{Integer => Integer}] frame of the dummy → of the real one: it counts as that
      def dummies(segment)
        parents = segment.parents
        (1...parents.size).each_with_object({}) do |node, found|
          parent = parents[node]
          found[segment.node_frames[parent]] = segment.node_frames[node] if at_dummys_place?(segment, parent) && main?(segment.frame(parent)) && main?(segment.frame(node))
        end
      end

      # The real one is hung up at the root; what ended in the dummy stays with it.
      def parents(segment, mains)
        parents = segment.parents.drop(1)
        return parents if mains.empty?

        parents.each_with_index.map do |parent, at|
          at_dummys_place?(segment, parent) && mains[segment.node_frames[parent]] == segment.node_frames[at + 1] ? 0 : parent
        end
      end

      # Where the dummy stands.
      def at_dummys_place?(segment, node) = node.positive? && segment.parents[node].zero? && segment.lines[node].zero?

      # By name and kind: the paths differ, one is as it was typed, the other absolute.
      def main?(frame) = frame.name == "<main>" && frame.kind == Record::Frame::RUBY

      def number(segment, frame_id)
        frame = segment.frames[frame_id] || Record::Frame.unresolved(frame_id)
        method = MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)
        @numbers[method.to_a] ||= begin
          @methods << method
          @methods.size - 1
        end
      end

      # What samples and sites tell better is left to them.
      def count(row, shift, segment)
        node = row.node_id.zero? ? 1 : row.node_id + shift
        @call_weights.each do |weight, sums|
          case weight
          when :wall, :cpu then sums[node] += [row[weight] - row.probe, 0].max if segment.tallies.empty?
          when :objects, :bytes then sums[node] += row[weight] if segment.sites.empty?
          else sums[node] += row[weight]
          end
        end
      end

      def weigh(tally, unit_ns, shift)
        cells = tally.cells
        @cells.each do |weight, sums|
          at = CELLS.fetch(weight)
          unit = weight == :captures ? 1 : unit_ns
          tally.node_ids.each do |node|
            value = cells[at]
            at += 3
            sums[node == 0 ? 1 : node + shift] += value * unit unless value == 0
          end
        end
      end

      def weigh_sites(segment, shift)
        scale = Allocations.scale(segment)
        segment.sites.each do |site|
          node = site.node.zero? ? special(site) : site.node + shift
          @site_weights.each do |weight, sums|
            next unless weight == :gc || site.program?

            value = site[SITE_WEIGHTS.fetch(weight)]
            sums[node] += weight == :gc ? value : (value * scale.call(site)).round
          end
        end
      end

      # A node at the root for what has no place in the code.
      def special(site)
        (@specials ||= {})[site.special] ||= begin
          @methods << (site.special ? MethodInfo.new(site.special, "", 0, 4) : NO_STACK)
          @node_methods << @methods.size - 1
          @parents << 0
          @lines << 0
          @selfs.each_value { |weights| weights << 0 }
          @parents.size - 1
        end
      end
    end
  end
end
