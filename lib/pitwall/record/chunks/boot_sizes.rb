# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/header"

module Pitwall
  module Record
    module Chunks
      # BOOT: sizes of the process at its start, when it had booted and at its end. The last chunk counts.
      class BootSizes < Chunk
        type "BOOT"
        # @return [Hash{String => Object}] BOOT of doc/record-format.md; empty where loads were not watched
        offers :boot_sums

        def initialize(...)
          super
          @boot_sums = {}
        end

        #: (String, Integer) -> void
        def read(payload, _offset)
          @boot_sums = Header.parse_object(payload)
        end
      end
    end

    class Segment
      # Were loads watched?
      #: () -> bool
      def boot? = !boot_sums.empty?

      # Sizes of the process, by name: "features", "rss", … Empty: not known.
      # @param moment [String] "start", "booted" or "end"
      #: (String) -> Hash[String, Integer]
      def boot_sizes(moment)
        sizes = boot_sums[moment]
        sizes.is_a?(Hash) ? sizes.select { |_, value| value.is_a?(Integer) } : {}
      end

      # A number of BOOT: "age_ns", "repeats", "repeat_ns", "lost".
      #: (String) -> Integer
      def boot_number(name) = boot_sums[name].is_a?(Integer) ? boot_sums[name] : 0
    end
  end
end
