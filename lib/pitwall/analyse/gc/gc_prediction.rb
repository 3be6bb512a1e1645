# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Predicted saving of removing a place: its own time with its callees, and the garbage collection that it causes.
    # This is a model: without the place, other code may allocate instead, and a smaller heap is collected differently.
    #
    # place:          as the user typed it
    # weight:         :wall or :cpu
    # saving:         Estimate in ns, own and gc together
    # own:            Estimate in ns of the time of the place and its callees; nil without samples
    # gc:             Estimate in ns of the collection time saved
    # runs:           Estimate of the number of GC runs saved, of all_runs
    # cost_ns:        mean time of a GC run
    # objects, bytes: no longer allocated
    # wall_ns:        wall time of the whole recording
    # whole_ns:       the whole recording in the clock of the weight
    # doubts:         standard deviations in ns by source: samples, collections (GC runs), followed (sampled objects),
    #                 heap (size of the heap without the place), model
    GCPrediction = Struct.new(:place, :weight, :saving, :own, :gc, :runs, :all_runs, :cost_ns, :objects, :bytes,
                              :wall_ns, :whole_ns, :doubts, keyword_init: true) do
      # The saving as a share of the whole, 0.0 to 1.0, in the clock of the weight.
      #: () -> Float
      def share = whole_ns.zero? ? 0.0 : saving.point.fdiv(whole_ns)

      # The prediction for one recording, from the prediction for the sum of so many recordings.
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
      # Standard deviations of predictions from what happened, as shares of the own time and of the collection time.
      # Measured by benchmarks/allocations/prediction.rb. The variances of the other sources are already subtracted, but
      # not the differences between two runs of one program on a shared machine.
      OWN_MODEL = 0.13
      GC_MODEL = 0.15
      # Objects that are followed in bursts are neighbours in time.
      # So a place's share has at least this relative standard deviation, however many objects were followed.
      # The value applies to a recording of BURSTS_NS. A shorter recording has fewer bursts, and so a larger deviation.
      BURSTS = 0.02
      BURSTS_NS = 2_000_000_000
      private_constant :OWN_MODEL, :GC_MODEL, :BURSTS, :BURSTS_NS

      # Samples of one process. own_ns: time in the place. captures: with the place on the stack; all_captures: all.
      Times = Struct.new(:own_ns, :captures, :all_captures)
      # Allocation sites of the place in one process.
      #
      # gc_ns:                  collection time charged to them
      # objects, bytes:         allocated; scaled up if only some objects were followed
      # followed, all_followed: followed objects of the place, and of all places
      # sampled:                whether only some objects were followed
      # elapsed_ns:             length of the recording
      Followed = Struct.new(:gc_ns, :objects, :bytes, :followed, :all_followed, :sampled, :elapsed_ns)

      # The prediction from the sums over processes.
      # @param factor [Float] time of GC runs in the clock of the weight, as a share of their wall time
      # @param work [GCWork::Shares, nil] the place's share of the collector's work; nil: use the sites' charged times
      # @api private
      #: (
      #    String, Array[Times], Array[Followed], GCTimeline, weight: Symbol, level: Float, ?whole_ns: Integer,
      #    ?work: GCWork::Shares?, ?factor: Float
      #  ) -> GCPrediction
      def self.of(place, times, sites, timeline, weight:, level:, whole_ns: timeline.wall_ns, work: nil, factor: 1.0)
        own = times.sum(&:own_ns)
        gc, heap = collection(sites, work, timeline, factor)
        cost = timeline.count.zero? ? 0.0 : timeline.total_ns * factor / timeline.count
        doubts = { samples: Math.sqrt(times.sum { |part| sample_variance(part) }),
                   collections: Math.sqrt(collection_variance(gc / factor, timeline)) * factor,
                   followed: Math.sqrt(sites.sum { |part| followed_variance(part) }), heap: heap,
                   model: Math.hypot(OWN_MODEL * own, GC_MODEL * gc) }
        own_sd = Math.hypot(doubts[:samples], OWN_MODEL * own)
        gc_sd = Math.sqrt(doubts[:collections]**2 + doubts[:followed]**2 + heap**2 + (GC_MODEL * gc)**2)
        gc_estimate = estimate(gc, gc_sd, level)
        own_estimate = estimate(own, own_sd, level) if times.sum(&:all_captures).positive?
        new(place: place, weight: weight, saving: estimate(own + gc, Math.hypot(own_sd, gc_sd), level),
            own: own_estimate, gc: gc_estimate,
            runs: runs(work, gc_estimate, timeline, cost), all_runs: timeline.count, cost_ns: cost.round,
            objects: sites.sum(&:objects), bytes: sites.sum(&:bytes), wall_ns: timeline.wall_ns, whole_ns: whole_ns,
            doubts: doubts)
      end

      # Collection time saved in ns, and its standard deviation.
      # With `work`, the saving lies between two bounds. The deviation is that of a uniform distribution between them.
      def self.collection(sites, work, timeline, factor)
        return [sites.sum(&:gc_ns), 0.0] unless work

        bounds = [[timeline.marking_ns, work.marking], [timeline.sweeping_ns, work.sweeping]].map do |ns, shares|
          shares.map { |share| share * ns * factor }
        end
        [bounds.sum { |low, high| (low + high) / 2 }, Math.sqrt(bounds.sum { |low, high| (high - low)**2 / 12 })]
      end

      # GC runs saved, if the heap stays as large as it is.
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

      # Each of n samples contains the place with probability p, so the number of such samples is binomial.
      # The variance is that of this number times the squared weight of a sample. Zero captures count as one.
      def self.sample_variance(part)
        return 0.0 if part.all_captures.zero?

        seen = [part.captures, 1].max.clamp(1, part.all_captures)
        weight = part.captures.zero? ? 0.0 : part.own_ns.fdiv(part.captures)
        weight**2 * seen * (1 - seen.fdiv(part.all_captures))
      end

      # Variance of the collection time saved, because it is unknown which GC runs would be saved and what they cost.
      # The sum of k of N runs, drawn without replacement, has the variance k s² (N − k)/N (Cochran 1977, 2.5).
      # Major and minor runs are separate strata, because their costs differ most (Cochran 5.3).
      # k is a difference of two rounded numbers, which adds 1/6 of a run's squared cost.
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

      # The place's share of the followed objects is binomial, and has the extra deviation of bursts.
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
