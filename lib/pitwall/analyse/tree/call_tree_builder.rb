# frozen_string_literal: true

require "pitwall/analyse/tree/call_tree"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # Makes one CallTree from the segments of a recording.
    # Two methods are the same when name, path, first line and kind are equal.
    # Times come from samples. Without samples, they come from traced calls, less the cost of the probes.
    class CallTreeBuilder
      # Index of a weight among the three values that a tally's cells have for each node.
      CELLS = { wall: 0, cpu: 1, captures: 2 }.freeze
      WEIGHTS = CELLS.keys.freeze
      # Weights of an allocation site → its fields. gc: ns of garbage collection charged to the site.
      # Counts only objects of the program, not of Pitwall or the VM. Allocations does the same.
      # Garbage collection is charged to sites of the VM and of Pitwall as well.
      SITE_WEIGHTS = { objects: :count, bytes: :bytes, gc: :gc_ns }.freeze
      # Weights of traced calls.
      CALL_WEIGHTS = %i[wall cpu calls wait objects bytes].freeze
      ROOT = MethodInfo.new("(root)", "", 0, 4).freeze
      # Method of rows at node 0, whose stack could not be read.
      NO_STACK = MethodInfo.new("(no stack)", "", 0, 4).freeze

      # @param weights [Array<Symbol>] :wall, :cpu, :wait and :gc in ns; :captures, :calls, :objects; :bytes
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
        @cells, @site_weights, @call_weights = [CELLS.keys, SITE_WEIGHTS.keys, CALL_WEIGHTS].map do |names|
          @selfs.slice(*names)
        end
      end

      # Adds a segment. Node k of the segment becomes node k + shift. The self weight of its node 0 goes to NO_STACK.
      # @return [Integer] shift
      #: (Record::Segment, Selection) -> Integer
      def add(segment, selection)
        shift = @parents.size - 1
        mains = real_mains(segment)
        numbers = Hash.new do |known, frame_id|
          known[frame_id] = method_number(segment, mains.fetch(frame_id, frame_id))
        end
        @parents.concat(parents(segment, mains).map! { |parent| parent.zero? ? 0 : parent + shift })
        @node_methods.concat(segment.node_frames.drop(1).map! { |frame_id| numbers[frame_id] })
        @lines.concat(segment.lines.drop(1))
        @selfs.each_value { |weights| weights.concat(Array.new(segment.parents.size - 1, 0)) }
        add_samples(segment, selection, shift) if @cells.any?
        add_sites(segment, shift) if @site_weights.any? && selection.every_thread?
        add_calls(segment, selection, shift) if @call_weights.any?
        shift
      end

      # The tree of all segments that were added.
      #: () -> CallTree
      def tree
        CallTree.new(methods: @methods, parents: @parents, node_methods: @node_methods, lines: @lines, selfs: @selfs)
      end

      private

      # Ruby up to 3.1 has a dummy frame at the root of the main thread: "<main>" at line 0.
      # The real "<main>" is its child.
      # @return [Hash{Integer => Integer}] frame id of the dummy → frame id of the real one, which replaces the dummy
      def real_mains(segment)
        parents = segment.parents
        (1...parents.size).each_with_object({}) do |node, mains|
          parent = parents[node]
          next unless dummy_position?(segment, parent) && main?(segment.frame(parent)) && main?(segment.frame(node))

          mains[segment.node_frames[parent]] = segment.node_frames[node]
        end
      end

      # Makes the real "<main>" a child of the root. Self weight of the dummy stays at the dummy's node.
      def parents(segment, mains)
        parents = segment.parents.drop(1)
        return parents if mains.empty?

        parents.each_with_index.map do |parent, at|
          real_main = dummy_position?(segment, parent) &&
                      mains[segment.node_frames[parent]] == segment.node_frames[at + 1]
          real_main ? 0 : parent
        end
      end

      # Only a child of the root at line 0 can be the dummy.
      def dummy_position?(segment, node)
        node.positive? && segment.parents[node].zero? && segment.lines[node].zero?
      end

      # Compares name and kind only. The paths differ: one is as typed on the command line, the other is absolute.
      def main?(frame) = frame.name == "<main>" && frame.kind == Record::Frame::RUBY

      def method_number(segment, frame_id)
        frame = segment.frames[frame_id] || Record::Frame.unresolved(frame_id)
        method = MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)
        @numbers[method.to_a] ||= begin
          @methods << method
          @methods.size - 1
        end
      end

      def add_calls(segment, selection, shift)
        segment.calls.each { |row| add_call(segment, row, shift) if selection.calls?(segment, row.thread_id) }
      end

      # Skips times where there are samples, and objects and bytes where there are sites: samples and sites are better.
      def add_call(segment, row, shift)
        node = row.node_id.zero? ? 1 : row.node_id + shift
        @call_weights.each do |weight, sums|
          case weight
          when :wall, :cpu then sums[node] += [row[weight] - row.probe, 0].max if segment.tallies.empty?
          when :objects, :bytes then sums[node] += row[weight] if segment.sites.empty?
          else sums[node] += row[weight]
          end
        end
      end

      def add_samples(segment, selection, shift)
        segment.tallies.each do |tally|
          add_tally(tally, segment.unit_ns, shift) if selection.tally?(segment, tally)
        end
      end

      def add_tally(tally, unit_ns, shift)
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

      def add_sites(segment, shift)
        scale = Allocations.scale(segment)
        segment.sites.each do |site|
          node = site.node.zero? ? special_node(site) : site.node + shift
          @site_weights.each do |weight, sums|
            next unless weight == :gc || site.program?

            value = site[SITE_WEIGHTS.fetch(weight)]
            sums[node] += weight == :gc ? value : (value * scale.call(site)).round
          end
        end
      end

      # Node of a site that has no stack, e.g. the VM's objects. Such nodes are children of the root.
      def special_node(site)
        (@special_nodes ||= {})[site.special] ||= begin
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
