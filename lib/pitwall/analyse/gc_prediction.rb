# frozen_string_literal: true

require "pitwall/analyse/estimate"
require "pitwall/analyse/statistics"

module Pitwall
  module Analyse
    # What removing a place is expected to save: own time (with what it calls), and collections avoided × what one costs. A
    # model: other code may allocate instead, and a smaller heap is collected at other times.
    #
    # place as it was asked for; saving, own, gc: Estimates in ns; runs: Estimate of the collections avoided, of all_runs;
    # cost_ns: of one, on average; objects and bytes no longer allocated; wall_ns: of the whole recording;
    # doubts: standard deviations in ns by their source: samples, collections, followed (objects), model.
    GCPrediction = Struct.new(:place, :weight, :saving, :own, :gc, :runs, :all_runs, :cost_ns, :objects, :bytes, :wall_ns, :doubts, keyword_init: true) do
      # A line for people: nothing to hide behind. Share of the wall time.
      #: () -> Float
      def share = wall_ns.zero? ? 0.0 : saving.point.fdiv(wall_ns)
    end

    class GCPrediction
      LEVEL = 0.95
      # How far predictions lay from what happened, beyond what the other doubts explain, as a part of the own time and of the
      # collection time (standard deviations): what benchmarks/allocations/prediction.rb showed, with the difference that there is
      # between two runs of the same program on a shared machine.
      OWN_MODEL = 0.10
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
      # @api private
      #: (String, Array[Times], Array[Followed], GCTimeline, weight: Symbol, level: Float, ?factor: Float) -> GCPrediction
      def self.of(place, times, sites, timeline, weight:, level:, factor: 1.0)
        own = times.sum(&:own_ns)
        gc = sites.sum(&:gc_ns)
        cost = timeline.count.zero? ? 0.0 : timeline.total_ns * factor / timeline.count
        doubts = { samples: Math.sqrt(times.sum { |part| sample_variance(part) }), collections: Math.sqrt(collection_variance(gc / factor, timeline)) * factor,
                   followed: Math.sqrt(sites.sum { |part| followed_variance(part) }), model: Math.hypot(OWN_MODEL * own, GC_MODEL * gc) }
        own_sd = Math.hypot(doubts[:samples], OWN_MODEL * own)
        gc_sd = Math.sqrt(doubts[:collections]**2 + doubts[:followed]**2 + (GC_MODEL * gc)**2)
        gc_estimate = estimate(gc, gc_sd, level)
        new(place: place, weight: weight, saving: estimate(own + gc, Math.hypot(own_sd, gc_sd), level), own: estimate(own, own_sd, level), gc: gc_estimate,
            runs: cost.zero? ? Estimate.new(0.0, 0.0, 0.0, level, nil) : gc_estimate.map { |ns| ns / cost }, all_runs: timeline.count, cost_ns: cost.round,
            objects: sites.sum(&:objects), bytes: sites.sum(&:bytes), wall_ns: timeline.wall_ns, doubts: doubts)
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
      private_class_method :estimate, :sample_variance, :collection_variance, :followed_variance
    end
  end
end
