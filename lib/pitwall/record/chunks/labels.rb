# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    module Chunks
      # LABL: label sets, e.g. {"controller" => "CartsController"}. One row for each label; all rows of a set stand in
      # one chunk, before the rows that name the set. Set 0 has no labels.
      class Labels < Chunk
        # The highest number of a set. Also how many labels all sets of a file, and rows with sums by label set, may
        # have.
        LIMIT = 200_000

        type "LABL"
        limit :labels, LIMIT
        # @return [Array<Hash{String => String}, nil>] by number: what the program said samples were for; set 0 is {}
        offers :label_sets

        def initialize(...)
          super
          @label_sets = [{}]
        end

        #: (Columns) -> void
        def read_columns(columns)
          count = columns.int
          ids, names, values = %w[id name value].map { |name| columns.column(count, name) }
          return if count.zero?

          wrong = ids.minmax.find { |id| !id.between?(1, LIMIT) }
          raise Malformed, "numbers a label set #{wrong}" if wrong

          strings = table(Strings)
          strings.check([names.max, values.max].max)
          take(:labels, count)
          count.times { |at| (@label_sets[ids[at]] ||= {})[strings.fetch(names[at])] = strings.fetch(values[at]) }
        end

        # Sets that other chunks name must be known. Salvage accepts lost ones.
        # @raise [Malformed]
        #: (Array[Integer]) -> void
        def check(sets)
          return if salvage?

          lost = sets.find { |set| !@label_sets[set] }
          raise Malformed, "names label set #{lost}, which it does not have" if lost
        end
      end
    end

    class Segment
      # The labels of a set's number; none for a lost set.
      #: (Integer) -> Hash[String, String]
      def labels(id) = label_sets[id] || {}

      # Did the program say what its work was for?
      #: () -> bool
      def labelled? = label_sets.size > 1
    end
  end
end
