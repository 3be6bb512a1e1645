# frozen_string_literal: true

require "pitwall/record/chunks/sites"

module Pitwall
  module Analyse
    # What part of the collector's work a place's objects make: of marking and of sweeping, each a part of 1, from recordings that followed
    # every object to its end (GCWK of the format). Both lie between two bounds, as it depends on the size that the heap takes without the place.
    #
    # A place brings about the part `started` of the runs, by using up slots of a size or malloc'ed memory; without it these are not needed.
    #
    # Marking. In the runs that remain, the place's objects are not marked: the part `living` of the work. But a heap shrinks with what lives in it,
    # in the end, and one that is `shrinks` times as small is used up so many times as fast. So there is left between (1 − started)(1 − living) and
    # `shrinks` times that. (Where all work is major runs, a run costs in proportion to what lives, and both effects cancel.)
    #
    # Sweeping. Each object is freed once, whenever that is, and one with malloc'ed memory costs a call of free more: the part `freed`. But a
    # run also visits slots that are free already: that goes by runs, and the size of the heap cancels.
    module GCWork
      Shares = Struct.new(:started, :living, :shrinks, :freed) do
        # @return [Array<Float>] low and high
        #: () -> [Float, Float]
        def marking = [shrinks, 1.0].map { |times| [1 - (1 - started) * (1 - living) * times, -1.0].max }

        # @return [Array<Float>] low and high
        #: () -> [Float, Float]
        def sweeping = [started, freed].minmax
      end
      # What freeing malloc'ed memory takes beside sweeping the slot.
      MALLOC = 2.0
      private_constant :MALLOC

      # @param chosen [Array<Array(Record::Segment, Array<Record::Site>)>] processes, each with the place's sites
      # @return [Shares, nil] nil where it was not recorded, or nothing was collected
      #: (Array[[Record::Segment, Array[Record::Site]]]) -> Shares?
      def self.shares(chosen)
        return unless chosen.any? && chosen.all? { |segment, _| known?(segment) }

        parts = chosen.map { |segment, mine| [runs(segment), segment.sites, mine] }
        marking = parts.sum { |runs, _| runs.sum(&:marking_ns) }
        return if marking.zero?

        mine = chosen.flat_map(&:last)
        freed = parts.sum { |_, all, _| all.sum { |site| freeing(site) } }
        Shares.new([mine.sum(&:started_ns).fdiv(marking), 1.0].min, [parts.sum { |part| living_ns(*part) } / marking, 1.0].min, shrinks(parts),
                   freed.zero? ? 0.0 : mine.sum { |site| freeing(site) } / freed)
      end

      # Marking time for the place's objects. A major run marks what lives in the whole heap, which is known; of a minor one the least says what is marked
      # whoever lives, and the rest is for young objects.
      def self.living_ns(runs, all, mine)
        majors, minors = runs.partition(&:major?)
        living = majors.sum { |run| run.living.to_i * run.runs }
        young = all.sum(&:minor_marks)
        beyond = minors.sum(&:marking_ns) - minors.sum(&:runs) * minors.map { |run| run.marking_ns.fdiv(run.runs) }.min.to_f
        part(mine.sum(&:major_marks), living) * majors.sum(&:marking_ns) + part(mine.sum(&:minor_marks), young) * beyond
      end

      # How many times as much lives with the place's objects as without.
      def self.shrinks(parts)
        with = parts.sum { |runs, _| runs.sum { |run| run.living.to_i * run.runs } }
        lived = parts.sum { |_, _, mine| mine.sum(&:lived) }
        with.zero? ? 1.0 : 1 / (1 - [part(lived, with), MOST_OF_A_HEAP].min)
      end

      # What Ruby itself needs lives in every heap.
      MOST_OF_A_HEAP = 0.98
      private_constant :MOST_OF_A_HEAP

      # The VM's own objects are not followed, and hardly ever live long.
      def self.freeing(site)
        case site.id
        when Record::Site::VM then site.count.to_f
        when Record::Site::PITWALL then 0.0
        else site.freed + MALLOC * site.mallocs
        end
      end

      def self.part(some, all) = all.zero? ? 0.0 : [some.fdiv(all), 1.0].min

      def self.known?(segment) = segment.sites.any? && segment.sites.all?(&:started_ns)

      # Those that began in the recording, without Pitwall's own at the end.
      def self.runs(segment)
        runs = segment.collections.select { |run| run.runs.positive? }
        segment.tail && runs.last&.major? && %i[method capi].include?(runs.last.cause) ? runs[0...-1] : runs
      end
      private_class_method :living_ns, :shrinks, :freeing, :part, :known?, :runs
    end
  end
end
