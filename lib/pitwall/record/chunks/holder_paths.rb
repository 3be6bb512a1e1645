# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # Which references kept some objects alive at the end.
    #
    # flags:     bits of how the search ended, see WORDS
    # looked_at: objects searched
    # took_ns:   time of the search
    # paths:     by site, for each object the steps from a root to the object, e.g.
    #            ["Shop::ORDERS (Array of 12,000)", "String"]; [] where no path was found
    Holders = Struct.new(:flags, :looked_at, :took_ns, :paths) do
      # Why paths may be missing, in words; nil where the search was complete.
      #: () -> String?
      def cut = Holders::WORDS.find { |bit, _| flags & bit != 0 }&.last
    end

    class Holders
      WORDS = {
        4 => "who holds objects was not looked for: the program has several Ractors",
        8 => "who holds objects can't be looked for on this Ruby",
        1 => "the search for who holds objects ended after its 5 s: paths may be missing",
        2 => "the search for who holds objects ended after 4,000,000 objects: paths may be missing"
      }.freeze
    end

    module Chunks
      # HOLD: paths of references from a root to an object, one row for each step. The strings of the steps may come in
      # a later chunk.
      class HolderPaths < Chunk
        Step = Struct.new(:site, :path, :step, :text)
        private_constant :Step

        type "HOLD"
        # @return [Holders, nil] who keeps growing sites' objects alive; nil where the search was not asked for
        offers :holders

        #: (Columns) -> void
        def read_columns(columns)
          search = Array.new(3) { columns.int }
          values = columns_of(columns, Step)
          take(:living, values.first.size)
          @search = search
          @steps = build_all(Step, values)
        end

        def settle(_payload_at)
          @holders = Holders.new(*@search, @steps.group_by(&:site).transform_values { |steps| paths(steps) }) if @search
        end

        private

        def paths(steps)
          strings = table(Strings)
          steps.group_by(&:path).values.map do |path|
            path.sort_by(&:step).map { |step| strings.known(step.text) }
          end
        end
      end
    end
  end
end
