# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/chunks/allocations"
require "pitwall/record/chunks/birth_rows"
require "pitwall/record/chunks/boot_sizes"
require "pitwall/record/chunks/cache_changes"
require "pitwall/record/chunks/cache_counters"
require "pitwall/record/chunks/collection_work"
require "pitwall/record/chunks/collections"
require "pitwall/record/chunks/definition_costs"
require "pitwall/record/chunks/equal_string_groups"
require "pitwall/record/chunks/file_uses"
require "pitwall/record/chunks/frames"
require "pitwall/record/chunks/head"
require "pitwall/record/chunks/holder_paths"
require "pitwall/record/chunks/labels"
require "pitwall/record/chunks/living_points"
require "pitwall/record/chunks/loads"
require "pitwall/record/chunks/marks"
require "pitwall/record/chunks/mark_counters"
require "pitwall/record/chunks/nodes"
require "pitwall/record/chunks/open"
require "pitwall/record/chunks/queries"
require "pitwall/record/chunks/query_parts"
require "pitwall/record/chunks/query_sums"
require "pitwall/record/chunks/repeated_loads"
require "pitwall/record/chunks/room"
require "pitwall/record/chunks/samples"
require "pitwall/record/chunks/shared_objects"
require "pitwall/record/chunks/sites"
require "pitwall/record/chunks/stats"
require "pitwall/record/chunks/strings"
require "pitwall/record/chunks/syscall_totals"
require "pitwall/record/chunks/syscalls"
require "pitwall/record/chunks/tail"
require "pitwall/record/chunks/tests"
require "pitwall/record/chunks/threads"
require "pitwall/record/chunks/traced_calls"
require "pitwall/record/chunks/tracing"
require "pitwall/record/chunks/work_counters"
require "pitwall/record/chunks/works"

module Pitwall
  module Record
    # All chunk types that this reader knows. A new type is one file in record/chunks/, required above and listed here.
    # @api private
    module Chunks
      @by_type = {}

      class << self
        # @return [Hash{String => Class}] chunk classes by their four letters
        attr_reader :by_type

        # @param chunk [Class] a subclass of Chunk with a type of its own
        #: (Class) -> void
        def register(chunk)
          type = chunk.type
          raise ArgumentError, "#{chunk} has type #{type.inspect}, not four letters" unless type&.match?(/\A[A-Z]{4}\z/)
          raise ArgumentError, "#{chunk} has type #{type}, which #{by_type[type]} reads" if by_type.key?(type)

          by_type[type] = chunk
        end

        # @return [Hash{Symbol => Integer}] the limits of all types
        #: () -> Hash[Symbol, Integer]
        def limits = by_type.each_value.map(&:limits).reduce(:merge)
      end

      # In reading order: a type follows the types that its rows name.
      [
        # How the segment was recorded.
        Head, Room,
        # The stack tree and what it consists of.
        Strings, Frames, Nodes, Threads, Labels, SharedObjects,
        # Time.
        Samples, Open,
        # Requests, jobs, tests and queries.
        Marks, Works, Tests, Queries, QuerySums, QueryParts, WorkCounters, MarkCounters,
        # Garbage collection and objects.
        Collections, Sites, Allocations, CollectionWork, LivingPoints, BirthRows, HolderPaths, EqualStringGroups,
        # Exact calls.
        TracedCalls, Tracing,
        # System calls.
        Syscalls, SyscallTotals,
        # Changes that empty caches.
        CacheChanges, CacheCounters, DefinitionCosts,
        # What a boot loads.
        Loads, RepeatedLoads, FileUses, BootSizes,
        # How the recording went and how it ended.
        Stats, Tail
      ].each { |chunk| register(chunk) }
    end
    private_constant :Chunks
  end
end
