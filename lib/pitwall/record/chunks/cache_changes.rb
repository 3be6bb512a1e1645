# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A change of a class, method or constant, which empties caches of the VM.
    #
    # at_ns:    ns since the recording's start
    # kind:     "method_added" (CHNG of doc/record-format.md has all)
    # node_id:  the stack that made the change; 0: unknown
    # subject:  "Shop::Cart#sum"
    # begun:    pieces of work (requests, jobs, tests) that had begun before; ended: that had ended
    # constants, classes, class_variables, shapes: increase of the VM's counters
    # label:    number of the thread's label set
    # misses:   misses of constant caches since the start; 0: not counted
    CacheChange = Struct.new(:thread, :at_ns, :kind, :node_id, :subject, :begun, :ended, :constants, :classes,
                             :class_variables, :shapes, :label, :misses)

    module Chunks
      # CHNG: changes that empty caches. Their strings and nodes may come in a later chunk.
      class CacheChanges < Chunk
        type "CHNG"
        limit :cache_changes, 4_000_000
        # @return [Array<CacheChange>] in the order of the recording
        offers :cache_changes

        # Older recordings lack these members.
        LATER = %i[label misses].freeze
        private_constant :LATER

        def initialize(...)
          super
          @cache_changes = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, CacheChange, later: LATER)
          take(:cache_changes, values.first.size)
          @cache_changes.concat(build_all(CacheChange, values))
        end

        # A change whose stack was lost has none.
        def settle(_payload_at)
          name_strings(@cache_changes, :kind, :subject)
          nodes = table(Nodes).size
          @cache_changes.each do |change|
            next if change.node_id < nodes

            change.node_id = 0
            lose
          end
        end
      end
    end
  end
end
