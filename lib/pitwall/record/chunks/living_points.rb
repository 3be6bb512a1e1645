# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # How many of each site's objects survived one garbage collection.
    #
    # number: counts up from 1; numbers are missing where points were dropped
    # at_ns:  since the segment's start
    # rss:    resident memory in bytes; nil where unknown
    # flags:  bits FULL and AT_END
    # sites:  ids of sites with living objects
    # counts: the living objects of each
    # births: Array of Births; nil where not recorded
    LivingPoint = Struct.new(:number, :at_ns, :rss, :flags, :sites, :counts, :births) do
      # Are the counts exact? After a minor collection they are upper bounds.
      #: () -> bool
      def full? = flags & LivingPoint::FULL != 0

      # Is this the collection that Pitwall asked for at the end?
      #: () -> bool
      def at_end? = flags & LivingPoint::AT_END != 0
    end

    class LivingPoint
      # A full mark: every living object was reachable.
      FULL = 1
      # The collection that Pitwall asked for at the end.
      AT_END = 2
    end

    module Chunks
      # LIVE: living objects by site, at one point in time.
      class LivingPoints < Chunk
        type "LIVE"
        # Rows of LIVE, BORN and HOLD.
        limit :living, 20_000_000
        # @return [Array<LivingPoint>] what lived over time, in that order; empty where not recorded
        offers :living_points

        def initialize(...)
          super
          @points = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          number, at_ns, rss, flags, count = Array.new(5) { columns.int }
          sites = columns.column(count, "site")
          counts = columns.column(count, "living")
          take(:living, count + 1)
          @points[number] = LivingPoint.new(number, at_ns, rss.zero? ? nil : rss - 1, flags, sites, counts)
        end

        # @return [LivingPoint, nil]
        #: (Integer) -> LivingPoint?
        def point(number) = @points[number]

        def parts = { living_points: @points.values.sort_by(&:number) }
      end
    end

    class Segment
      # Was recorded what lived over time?
      #: () -> bool
      def growth? = living_points.any?
    end
  end
end
