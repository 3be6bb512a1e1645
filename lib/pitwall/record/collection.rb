# frozen_string_literal: true

module Pitwall
  module Record
    # One run of the garbage collector, or several neighbours where there were too many (runs > 1). It goes on, in pauses,
    # until the next begins: lazy sweeping is done bit by bit. With runs 0 it began before the recording did.
    #
    # start_ns since the segment's start; span_ns from there to the end of the last pause; marking_ns and sweeping_ns are
    # what the pauses took; longest_ns of the longest pause, which began longest_at_ns after the start, in thread_id;
    # runs, majors and immediate_sweeps are counts; cause and major_cause as Ruby's GC.latest_gc_info names them (:gc_by and
    # :major_by; nil: unknown or minor; :mixed); allocated: objects since the run before began; living: slots that were
    # in use when it began and still are (nil: it has not ended).
    Collection = Struct.new(:start_ns, :span_ns, :marking_ns, :sweeping_ns, :pauses, :longest_ns, :longest_at_ns, :thread_id,
                            :runs, :majors, :immediate_sweeps, :cause, :major_cause, :allocated, :living) do
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
  end
end
