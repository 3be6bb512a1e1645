# frozen_string_literal: true

require "pitwall/analyse/recording/selection"
require "pitwall/analyse/threads/states"

module Pitwall
  module Analyse
    # How long threads waited, and in which methods. A thread that is ready but has no GVL waits for the GVL.
    class WaitingTime
      GVL = "the GVL"
      # Share of the wall time from which waiting stands apart, and what must have run for something to be left to show.
      APART = 0.2
      LEAST_NS = 20_000_000
      private_constant :APART, :LEAST_NS

      # @return [Integer] ns; all: of the wall time that is looked at
      attr_reader :total, :all

      #: (Array[Record::Segment], ?Selection) -> void
      def initialize(segments, selection = Selection.all)
        @sums = Hash.new(0)
        @total = @all = 0
        segments.select { |segment| selection.segment?(segment) }.each do |segment|
          segment.tallies.each { |tally| add(segment, tally) if selection.tally?(segment, tally) }
        end
      end

      # @return [Array<[String, Integer]>] method, ns: the longest first
      #: () -> Array[[String, Integer]]
      def rows = @rows ||= @sums.sort_by { |name, ns| [-ns, name] }

      #: () -> Float
      def share = @all.zero? ? 0.0 : @total.fdiv(@all)

      # Whether a report is better told of what ran.
      #: () -> bool
      def apart? = share >= APART && @all - @total >= LEAST_NS

      private

      def add(segment, tally)
        stands = States[tally.state].stands
        tally.each do |node, wall, _, _|
          ns = wall * segment.unit_ns
          @all += ns
          next unless stands && ns.positive?

          @total += ns
          @sums[stands == :gvl ? GVL : segment.frame(node).name] += ns
        end
      end
    end
  end
end
