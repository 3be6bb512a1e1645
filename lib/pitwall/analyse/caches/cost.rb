# frozen_string_literal: true

module Pitwall
  module Analyse
    # What changes that empty caches cost, as far as a recording can tell.
    #
    # Two figures, each with its doubt. Misses that follow: constant cache misses between a change that emptied caches
    # of constants and the next such change. Code that runs for the first time misses as well, so this is an upper
    # bound.
    # Time: of samples whose stack passes the line that made the change.
    class CachesCost
      # misses:  at most so many constant cache misses followed; nil: this Ruby does not count them
      # emptied: the increase of Ruby's counters
      # time_ns: of the line, with what it calls; nil: the recording has no samples
      # samples: how many samples time_ns consists of
      Figures = Struct.new(:misses, :emptied, :time_ns, :samples, keyword_init: true) do
        # What time_ns may be off by, relative to it, from the number of samples (95%): 0.2 is ±20%.
        #: () -> Float?
        def doubt = (1.96 / Math.sqrt(samples) if samples&.positive?)

        # The more it costs, the earlier it comes.
        #: () -> Array[Integer]
        def rank = [-time_ns.to_i, -misses.to_i, -emptied]
      end

      RUNNING = 0
      NONE = [].freeze
      private_constant :RUNNING, :NONE

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # Has the recording samples?
      #: () -> bool
      def sampled? = @segments.any? { |segment| segment.tallies.any? }

      # Does a Ruby of the recording count misses of constant caches?
      #: () -> bool
      def misses? = @segments.any? { |segment| segment.cache_stat?("constant_cache_misses") }

      # Misses that follow each change of a segment, in the order of the segment's changes.
      #: (Record::Segment) -> Array[Integer]
      def misses_after(segment)
        (@misses ||= {})[segment] ||= begin
          changes = segment.cache_changes
          found = Array.new(changes.size, 0)
          later = segment.cache_counters.fetch("constant_cache_misses", 0)
          changes.each_index.sort_by { |at| [-changes[at].at_ns, -at] }.each do |at|
            next unless changes[at].constants.positive?

            found[at] = [later - changes[at].misses, 0].max
            later = changes[at].misses
          end
          found
        end
      end

      # Time and samples of lines.
      # @param places [Array] of [path, line]
      # @return [Hash{Array => Array}] [path, line] => [ns, samples]
      #: (Array[[String, Integer]]) -> Hash[[String, Integer], [Integer, Integer]]
      def times(places)
        wanted = places.to_h { |place| [place, [place].freeze] }
        sums = places.to_h { |place| [place, [0, 0]] }
        @segments.each { |segment| add_times(segment, wanted, sums) }
        sums
      end

      private

      def add_times(segment, wanted, sums)
        passed = { 0 => NONE }
        segment.tallies.each do |tally|
          next unless tally.state == RUNNING

          tally.each do |node, wall, _cpu, captures|
            passes(segment, node, wanted, passed).each do |place|
              sums[place][0] += wall * segment.unit_ns
              sums[place][1] += captures
            end
          end
        end
      end

      # The wanted places that the stack passes, each once.
      def passes(segment, node, wanted, known)
        path = []
        until known.key?(node)
          path << node
          node = segment.parents[node]
        end
        path.reverse_each do |one|
          own = wanted[[segment.frame(one).path, segment.lines[one]]]
          above = known[node]
          known[one] = own.nil? || above.include?(own.first) ? above : above + own
          node = one
        end
        known[path.first || node]
      end
    end
  end
end
