# frozen_string_literal: true

require "pitwall/analyse/recording/selection"
require "pitwall/analyse/recording/states"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    # How long threads waited, and in which methods. A thread that could run but has no GVL waits for the GVL. The
    # method of a native frame is the one that called native code, because its name says what was waited for.
    class WaitingTime
      GVL = "the GVL"
      # A report leaves out waiting that is at least this share of the wall time, if at least LEAST_NS remain.
      APART = 0.2
      LEAST_NS = 20_000_000
      private_constant :APART, :LEAST_NS

      # @return [Integer] ns; total: time waited, all: wall time of the samples
      attr_reader :total, :all

      #: (Array[Record::Segment], ?Selection) -> void
      def initialize(segments, selection = Selection.all)
        @sums = Hash.new(0)
        @by_frame = Hash.new(0)
        @total = @all = 0
        segments.select { |segment| selection.segment?(segment) }.each do |segment|
          segment.tallies.each { |tally| add(segment, tally) if selection.tally?(segment, tally) }
        end
      end

      # Methods that waited and how long, longest first. Waits for the GVL are one row named GVL.
      # @return [Array<[String, Integer]>] method, ns
      #: () -> Array[[String, Integer]]
      def rows = @rows ||= @sums.sort_by { |name, ns| [-ns, name] }

      # How long threads waited with that frame innermost, native frames included.
      #: (String) -> Integer
      def in(name) = @by_frame[name]

      # Share of the wall time that threads waited, 0.0 to 1.0.
      #: () -> Float
      def share = @all.zero? ? 0.0 : @total.fdiv(@all)

      # Whether waiting would hide the rest of a report. The report then shows the running time only.
      #: () -> bool
      def apart? = share >= APART && @all - @total >= LEAST_NS

      private

      def add(segment, tally)
        wait = States[tally.state].wait
        tally.each do |node, wall, _, _|
          ns = wall * segment.unit_ns
          @all += ns
          next unless wait && ns.positive?

          @total += ns
          @sums[wait == :gvl ? GVL : method(segment, node)] += ns
          @by_frame[segment.frame(node).name] += ns unless wait == :gvl
        end
      end

      def method(segment, leaf)
        node = leaf
        node = segment.parents[node] while node.positive? && segment.frame(node).kind == Record::Frame::NATIVE
        segment.frame(node.positive? ? node : leaf).name
      end
    end
  end
end
