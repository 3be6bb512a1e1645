# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # One run of the garbage collector, or several neighbours where there were too many (runs > 1). A run ends when the
    # next one begins: lazy sweeping is done in later pauses. With runs 0, the run began before the recording did.
    #
    # start_ns:     since the segment's start
    # span_ns:      from start_ns to the end of the last pause
    # marking_ns, sweeping_ns: time of all pauses
    # longest_ns:   the longest pause, which began longest_at_ns after the start, in thread_id
    # runs, majors, immediate_sweeps: counts
    # cause:        as Ruby's GC.latest_gc_info(:gc_by); nil where unknown, :mixed of several
    # major_cause:  as GC.latest_gc_info(:major_by); nil of a minor run, :mixed of several
    # allocated:    objects since the run before began
    # living:       slots that were in use when the run began and still are; nil where the run has not ended
    Collection = Struct.new(:start_ns, :span_ns, :marking_ns, :sweeping_ns, :pauses, :longest_ns, :longest_at_ns,
                            :thread_id, :runs, :majors, :immediate_sweeps, :cause, :major_cause, :allocated, :living) do
      #: () -> Integer
      def total_ns = marking_ns + sweeping_ns

      #: () -> bool
      def major? = majors.positive?

      #: () -> Integer
      def end_ns = start_ns + span_ns
    end
    Collection::CAUSES = [nil, :newobj, :malloc, :method, :capi, :stress].freeze
    Collection::MAJOR_CAUSES = [nil, :nofree, :oldgen, :shady, :force, :oldmalloc].freeze
    Collection::MIXED = 15

    module Chunks
      # GCEV: runs of the garbage collector. When the process has too many of them, it merges each two neighbours; a
      # chunk of a higher level replaces all runs read before.
      class Collections < Chunk
        type "GCEV"
        limit :collections, 1_000_000
        # @return [Array<Collection>] in the order of time
        offers :collections

        def initialize(...)
          super
          @collections = []
          @level = 0
        end

        #: (Columns) -> void
        def read_columns(columns)
          level = columns.int
          first = columns.int
          values = columns_of(columns, Collection)
          raise Malformed, "merges collections again" if level < @level

          known = level > @level ? [] : @collections
          unless first == known.size || salvage?
            raise Malformed, "continues with collection #{first} where #{known.size} is next"
          end
          take(:collections, values.first.size)
          @collections = known.concat(build_all(Collection, values).each { |run| name_causes(run) })
          @level = level
        end

        private

        def name_causes(run)
          run.cause = cause(Collection::CAUSES, run.cause)
          run.major_cause = cause(Collection::MAJOR_CAUSES, run.major_cause)
          run.living = nil if run.living.zero?
        end

        def cause(names, number) = number == Collection::MIXED ? :mixed : names[number]
      end
    end
  end
end
