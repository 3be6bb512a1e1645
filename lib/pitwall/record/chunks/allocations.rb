# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # Facts about all objects together.
    #
    # allocated: Ruby's own count from the start to the end; 0 when the process was killed
    # seen:      the program's objects, of which one in so many was followed
    # untracked: followed objects whose end is unknown, for lack of memory
    # flags:     bits ENDED, MISSED, BURSTS
    AllocationTotals = Struct.new(:allocated, :seen, :untracked, :flags)

    class AllocationTotals
      # Counting ended at the first Ractor (Ruby 3.1).
      ENDED = 1
      # Collections of other Ractors were missed.
      MISSED = 2
      # Objects were looked at in bursts only, and the end of none is known.
      BURSTS = 4

      #: () -> bool
      def bursts? = flags & BURSTS != 0
    end

    module Chunks
      # ALLO: counters of sites. Rows are cumulative: the last row of a site counts.
      class Allocations < Chunk
        type "ALLO"
        # @return [AllocationTotals, nil] nil where no objects were followed
        offers :allocation_totals
        # @return [Hash{Integer => Array<Integer, nil>}] Site::COUNTERS by the site's id
        attr_reader :by_site

        def initialize(...)
          super
          @by_site = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          totals = AllocationTotals.new(columns.int, columns.int, columns.int, columns.int)
          count = columns.int
          ids = columns.column(count, "id")
          *counters, last = Site::COUNTERS.map(&:to_s)
          values = counters.map { |name| columns.column(count, name) }
          values << (columns.more? ? columns.column(count, last) : [])
          keep_last(@by_site, ids, :sites) { |at| values.map { |column| column[at] } }
          @allocation_totals = totals
        end
      end
    end
  end
end
