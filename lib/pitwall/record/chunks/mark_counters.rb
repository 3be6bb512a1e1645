# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # The increase of a counter of the VM's caches in one request or job: the work of the Mark with the same thread and
    # end.
    MarkCounter = Struct.new(:thread_id, :end_ns, :name, :increase)

    module Chunks
      # CMRK: counters of marked work that had no other work beside it.
      class MarkCounters < Chunk
        type "CMRK"
        # Rows of all marks that a file may have.
        limit :mark_counters, Marks::LIMIT * 8
        # @return [Hash{[Integer, Integer] => Hash{String => Integer}}] increase by name, by thread and end of the mark
        offers :mark_counters

        def initialize(...)
          super
          @rows = {}
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, MarkCounter)
          take(:mark_counters, values.first.size)
          values.transpose.each { |thread, at, name, increase| (@rows[[thread, at]] ||= {})[name] = increase }
        end

        # Strings may come in a later chunk.
        def settle(_payload_at)
          strings = table(Strings)
          names = Hash.new { |known, id| known[id] = strings.known(id) }
          @mark_counters = @rows.transform_values { |counts| counts.transform_keys { |id| names[id] } }
        end
      end
    end
  end
end
