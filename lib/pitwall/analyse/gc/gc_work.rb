# frozen_string_literal: true

require "pitwall/record/chunks/sites"

module Pitwall
  module Analyse
    # The share of the collector's work that a place's objects cause, for marking and for sweeping.
    # Each is a share of 1.
    # Needs recordings that followed every object until it was freed (chunk GCWK). Both shares lie between two bounds,
    # because the size of the heap without the place is unknown.
    #
    # A place triggers the share `started` of the GC runs, by using up slots of a size or by allocating malloc'ed
    # memory. Without the place, these runs are not needed.
    #
    # Marking. The remaining runs do not mark the place's objects, which are the share `living` of the work.
    # But without these objects the heap becomes smaller in the long run: `heap_ratio` times as small.
    # Then it is full `heap_ratio` times as often. So the remaining work is between (1 − started)(1 − living) and
    # `heap_ratio` times this. If all runs are major, a run's cost is proportional to the living objects, and both
    # effects cancel.
    #
    # Sweeping. Each object is freed once, at any time. An object with malloc'ed memory also costs a call of free.
    # The place's share of this is `freed`. But a run also visits slots that are already free. This work is proportional
    # to the number of runs, and the size of the heap cancels.
    module GCWork
      Shares = Struct.new(:started, :living, :heap_ratio, :freed) do
        # Share of the marking time saved. Negative if a smaller heap costs more than is saved.
        # @return [Array<Float>] lower and upper bound
        #: () -> [Float, Float]
        def marking = [heap_ratio, 1.0].map { |times| [1 - (1 - started) * (1 - living) * times, -1.0].max }

        # Share of the sweeping time saved.
        # @return [Array<Float>] lower and upper bound
        #: () -> [Float, Float]
        def sweeping = [started, freed].minmax
      end
      # Cost of freeing malloc'ed memory, relative to sweeping one slot.
      MALLOC = 2.0
      private_constant :MALLOC

      # The shares of a place.
      # @param chosen [Array<Array(Record::Segment, Array<Record::Site>)>] processes, each with the place's sites
      # @return [Shares, nil] nil if the recording lacks the data, or if there was no marking
      #: (Array[[Record::Segment, Array[Record::Site]]]) -> Shares?
      def self.shares(chosen)
        return unless chosen.any? && chosen.all? { |segment, _| known?(segment) }

        parts = chosen.map { |segment, place_sites| [runs(segment), segment.sites, place_sites] }
        marking = parts.sum { |runs, _| runs.sum(&:marking_ns) }
        return if marking.zero?

        place_sites = chosen.flat_map(&:last)
        freed = parts.sum { |_, sites, _| sites.sum { |site| freeing(site) } }
        Shares.new([place_sites.sum(&:started_ns).fdiv(marking), 1.0].min,
                   [parts.sum { |part| living_ns(*part) } / marking, 1.0].min, heap_ratio(parts),
                   freed.zero? ? 0.0 : place_sites.sum { |site| freeing(site) } / freed)
      end

      # Time of marking the place's objects, in ns.
      # A major run marks all living objects, whose number is known.
      # The cheapest minor run shows the cost that does not depend on objects; the rest is for marking young objects.
      def self.living_ns(runs, sites, place_sites)
        majors, minors = runs.partition(&:major?)
        living = majors.sum { |run| run.living.to_i * run.runs }
        young = sites.sum(&:minor_marks)
        cheapest = minors.map { |run| run.marking_ns.fdiv(run.runs) }.min.to_f
        young_ns = minors.sum(&:marking_ns) - minors.sum(&:runs) * cheapest
        share(place_sites.sum(&:major_marks), living) * majors.sum(&:marking_ns) +
          share(place_sites.sum(&:minor_marks), young) * young_ns
      end

      # Number of living objects with the place, relative to the number without it.
      def self.heap_ratio(parts)
        with = parts.sum { |runs, _| runs.sum { |run| run.living.to_i * run.runs } }
        lived = parts.sum { |_, _, place_sites| place_sites.sum(&:lived) }
        with.zero? ? 1.0 : 1 / (1 - [share(lived, with), MOST_OF_A_HEAP].min)
      end

      # A place has at most this share of the living objects, because Ruby's own objects are in every heap.
      MOST_OF_A_HEAP = 0.98
      private_constant :MOST_OF_A_HEAP

      # Cost of freeing a site's objects, in slots.
      # The VM's own objects are not followed until they are freed, but almost all of them die young.
      def self.freeing(site)
        case site.id
        when Record::Site::VM then site.count.to_f
        when Record::Site::PITWALL then 0.0
        else site.freed + MALLOC * site.mallocs
        end
      end

      def self.share(some, all) = all.zero? ? 0.0 : [some.fdiv(all), 1.0].min

      def self.known?(segment) = segment.sites.any? && segment.sites.all?(&:started_ns)

      # Runs that began in the recording, without the last one if Pitwall itself triggered it.
      def self.runs(segment)
        runs = segment.collections.select { |run| run.runs.positive? }
        segment.tail && runs.last&.major? && %i[method capi].include?(runs.last.cause) ? runs[0...-1] : runs
      end
      private_class_method :living_ns, :heap_ratio, :freeing, :share, :known?, :runs
    end
  end
end
