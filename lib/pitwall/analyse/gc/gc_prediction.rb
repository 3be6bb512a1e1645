# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # What removing a place is expected to save: own time (with what it calls), and collections avoided × what one costs. A
    # model: other code may allocate instead, and a smaller heap is collected at other times.
    #
    # place as it was asked for; saving, own, gc: Estimates in ns, own is nil where no samples tell it; runs: Estimate of the collections avoided, of all_runs;
    # cost_ns: of one, on average; objects and bytes no longer allocated; wall_ns: of the whole recording; whole_ns: that in the clock of the weight;
    # doubts: standard deviations in ns by their source: samples, collections, followed (objects), heap (what size it takes), model.
    GCPrediction = Struct.new(:place, :weight, :saving, :own, :gc, :runs, :all_runs, :cost_ns, :objects, :bytes, :wall_ns, :whole_ns, :doubts, keyword_init: true) do
      # A line for people: nothing to hide behind. Share of the whole, in the clock of the weight.
      #: () -> Float
      def share = whole_ns.zero? ? 0.0 : saving.point.fdiv(whole_ns)

      # Of one of so many recordings, whose sums these are.
      #: (Integer) -> GCPrediction
      def per(recordings)
        estimates, counts = %i[saving own gc runs], %i[all_runs objects bytes wall_ns whole_ns]
        dup.tap do |part|
          estimates.each { |name| part[name] = self[name]&.map { |value| value / recordings } }
          counts.each { |name| part[name] = (self[name] / recordings.to_f).round }
          part.doubts = doubts.transform_values { |ns| ns / recordings }
        end
      end
    end

    class GCPrediction
      LEVEL = 0.95
      # How far predictions lay from what happened, beyond what the other doubts explain, as a part of the own time and of the
      # collection time (standard deviations): what benchmarks/allocations/prediction.rb showed, with the difference that there is
      # between two runs of the same program on a shared machine.
      OWN_MODEL = 0.13
      GC_MODEL = 0.15
      # Objects followed in bursts are neighbours: however many there were, a place's share is known to so much of itself
      # (standard deviation) in a recording of so many ns; in a shorter one there are fewer bursts.
      BURSTS = 0.02
      BURSTS_NS = 2_000_000_000
      private_constant :OWN_MODEL, :GC_MODEL, :BURSTS, :BURSTS_NS

      # What samples of one process tell: own_ns; captures that saw the place, and all.
      Times = Struct.new(:own_ns, :captures, :all_captures)
      # What its sites tell: gc_ns, its part of the collection; objects and bytes, scaled up where objects were sampled; followed, all_followed:
      # objects that were followed, of the place and of all; sampled: whether those were some only; elapsed_ns of the recording.
      Followed = Struct.new(:gc_ns, :objects, :bytes, :followed, :all_followed, :sampled, :elapsed_ns)

      # Sums over processes.
      # @param factor what is left of a run's wall time in the clock of the weight
      # @param work [GCWork::Shares, nil] the place's part of the collector's work; nil: it is what the sites were charged
      # @api private
      #: (String, Array[Times], Array[Followed], GCTimeline, weight: Symbol, level: Float, ?whole_ns: Integer, ?work: GCWork::Shares?, ?factor: Float) -> GCPrediction
      def self.of(place, times, sites, timeline, weight:, level:, whole_ns: timeline.wall_ns, work: nil, factor: 1.0)
        own = times.sum(&:own_ns)
        gc, heap = collection(sites, work, timeline, factor)
        cost = timeline.count.zero? ? 0.0 : timeline.total_ns * factor / timeline.count
        doubts = { samples: Math.sqrt(times.sum { |part| sample_variance(part) }), collections: Math.sqrt(collection_variance(gc / factor, timeline)) * factor,
                   followed: Math.sqrt(sites.sum { |part| followed_variance(part) }), heap: heap, model: Math.hypot(OWN_MODEL * own, GC_MODEL * gc) }
        own_sd = Math.hypot(doubts[:samples], OWN_MODEL * own)
        gc_sd = Math.sqrt(doubts[:collections]**2 + doubts[:followed]**2 + heap**2 + (GC_MODEL * gc)**2)
        gc_estimate = estimate(gc, gc_sd, level)
        new(place: place, weight: weight, saving: estimate(own + gc, Math.hypot(own_sd, gc_sd), level), own: (estimate(own, own_sd, level) if times.sum(&:all_captures).positive?), gc: gc_estimate,
            runs: runs(work, gc_estimate, timeline, cost), all_runs: timeline.count, cost_ns: cost.round,
            objects: sites.sum(&:objects), bytes: sites.sum(&:bytes), wall_ns: timeline.wall_ns, whole_ns: whole_ns, doubts: doubts)
      end

      # What would not be collected, the middle of what it may be, and the deviation of all that as likely.
      def self.collection(sites, work, timeline, factor)
        return [sites.sum(&:gc_ns), 0.0] unless work

        bounds = [[timeline.marking_ns, work.marking], [timeline.sweeping_ns, work.sweeping]].map { |ns, ends| ends.map { |share| share * ns * factor } }
        [bounds.sum { |low, high| (low + high) / 2 }, Math.sqrt(bounds.sum { |low, high| (high - low)**2 / 12 })]
      end

      # Of a heap of the same size.
      def self.runs(work, gc, timeline, cost)
        return Estimate.new(0.0, 0.0, 0.0, gc.level, nil) if cost.zero?
        return gc.map { |ns| ns / cost } unless work

        share = gc.point.zero? ? 0.0 : work.started * timeline.count / gc.point
        gc.map { |ns| ns * share }
      end

      def self.estimate(point, deviation, level)
        reach = -Statistics.normal_quantile((1 - level) / 2) * deviation
        Estimate.new(point.to_f, [point - reach, 0.0].max, point + reach, level, nil)
      end

      # Of n samples each had the chance p to see the place: a binomial count, times what a sample weighs. One that saw nothing
      # could have seen one.
      def self.sample_variance(part)
        return 0.0 if part.all_captures.zero?

        seen = [part.captures, 1].max.clamp(1, part.all_captures)
        weight = part.captures.zero? ? 0.0 : part.own_ns.fdiv(part.captures)
        weight**2 * seen * (1 - seen.fdiv(part.all_captures))
      end

      # Which of the runs would not have been, and what they cost: k of the N runs drawn without replacement have a sum with
      # variance k s² (N − k)/N (Cochran 1977, 2.5), major and minor runs apart as they differ most (5.3); and k is a difference of
      # two whole numbers, each rounded: a sixth of a run's cost squared.
      def self.collection_variance(gc, timeline)
        return 0.0 if timeline.total_ns.zero? || gc.zero?

        share = [gc / timeline.total_ns, 1.0].min
        timeline.runs.map(&:collection).select { |run| run.runs.positive? }.group_by(&:major?).each_value.sum do |runs|
          costs = runs.map { |run| run.total_ns.fdiv(run.runs) }
          all = runs.sum(&:runs)
          mean = Statistics.mean(costs)
          spread = costs.size < 2 ? mean**2 : costs.sum { |cost| (cost - mean)**2 } / (costs.size - 1)
          share * all * (1 - share) * spread + [mean**2 / 6, share * mean**2].min
        end
      end

      # The place's share of the objects that were followed is a binomial one.
      def self.followed_variance(part)
        return 0.0 if !part.sampled || part.followed.zero?

        share = part.followed.fdiv(part.all_followed)
        shorter = [BURSTS_NS.fdiv([part.elapsed_ns, 1].max), 1.0].max
        part.gc_ns**2 * ((1 - share) / part.followed + BURSTS**2 * shorter)
      end
      private_class_method :collection, :runs, :estimate, :sample_variance, :collection_variance, :followed_variance
    end
  end
end
