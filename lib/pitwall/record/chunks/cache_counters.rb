# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/header"

module Pitwall
  module Record
    module Chunks
      # CHSM: the VM's counters of its caches, and how changes were watched. The last chunk counts.
      class CacheCounters < Chunk
        type "CHSM"
        # @return [Hash{String => Object}] CHSM of doc/record-format.md; empty where caches were not watched
        offers :cache_sums

        def initialize(...)
          super
          @cache_sums = {}
        end

        #: (String, Integer) -> void
        def read(payload, _offset)
          @cache_sums = Header.parse_object(payload)
        end
      end
    end

    class Segment
      # Were caches watched?
      #: () -> bool
      def caches? = !cache_sums.empty?

      # The increase of each counter of the VM, by its name in RubyVM.stat.
      #: () -> Hash[String, Integer]
      def cache_counters = cache_figures.transform_values { |from, to, _own| to - from }

      # The part of it that Pitwall's own code caused.
      #: () -> Hash[String, Integer]
      def own_cache_counters = cache_figures.transform_values { |_from, _to, own| own }

      # Does this process's Ruby have the counter?
      #: (String) -> bool
      def cache_stat?(name) = cache_figures.key?(name)

      # How changes were watched: "lines", "methods", "counters".
      #: () -> String
      def caches_watched = cache_sums["watched"].to_s

      # How often comparing lines stopped, because many lines in a row had changed nothing.
      #: () -> Integer
      def cache_line_rests = cache_number("rests")

      # Pieces of work (requests, jobs, tests) that began, and that ended.
      #: () -> Integer
      def works_begun = cache_number("begun")

      #: () -> Integer
      def works_ended = cache_number("ended")

      # Changes that are not in the recording.
      #: () -> Integer
      def cache_changes_lost = cache_number("lost")

      private

      def cache_number(name) = cache_sums[name].is_a?(Integer) ? cache_sums[name] : 0

      def cache_figures
        counters = cache_sums["counters"]
        return {} unless counters.is_a?(Hash)

        counters.select { |_, figures| figures.is_a?(Array) && figures.size == 3 && figures.all?(Integer) }
      end
    end
  end
end
