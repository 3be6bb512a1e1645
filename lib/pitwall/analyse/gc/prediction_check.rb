# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/gc/gc_cost"
require "pitwall/analyse/statistics/statistics"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Compares the predicted saving of removing a place with the saving that was measured after removing it.
    #
    # With two recordings or more on each side, the interval of the measured saving is Welch's interval of the
    # difference of the means.
    # One recording on each side does not show how runs differ. Then the error is estimated from the time *outside* the
    # place, which should not change: the whole times its relative change, and at least the whole times ONE_RUN.
    #
    # prediction:    GCPrediction for one run
    # saving, own, gc, runs: Estimates of what was saved (A minus B), in ns and GC runs. level is nil if the error is
    #                estimated from one run. own, gc and runs are nil if they were not measured.
    # before, after: ns of A and of B
    # sides:         number of runs of A and of B
    # noise:         source of the error: :between_runs, :one_run, or :measured (by `compare`)
    # elsewhere:     time outside the place as B/A; nil if unknown
    # verdict:       :within, :less, :more or :undecided
    # reason:        why the verdict is :undecided, else nil
    PredictionCheck = Struct.new(:prediction, :saving, :own, :gc, :runs, :before, :after, :sides, :noise, :elsewhere,
                                 :verdict, :reason, keyword_init: true)

    class PredictionCheck
      LEVEL = 0.95
      # Assumed difference between two runs of one program, as a share of the whole, if nothing else is known.
      ONE_RUN = 0.03
      # The time outside the place is used only above this share of the whole.
      LITTLE = 0.05
      # Fewest recordings on each side for an interval of the difference between runs.
      RUNS = 2
      # Times of one recording in ns, and its number of GC runs. place_ns: the part of own_ns in the place.
      Spent = Struct.new(:own_ns, :gc_ns, :runs, :place_ns) do
        #: () -> Integer
        def total_ns = own_ns + gc_ns
      end
      private_constant :LITTLE

      # Checks a prediction against recordings.
      # @param before [Array<Array<Record::Segment>>] recordings with the place; each a list of segments
      # @param after [Array<Array<Record::Segment>>] recordings without the place
      # @param more [Array<Array<Record::Segment>>] more recordings like `before`, for the prediction only
      # @raise [UsageError] when there is no such place, or there are no allocation sites or samples
      #: (
      #    String, before: Array[Array[Record::Segment]], after: Array[Array[Record::Segment]],
      #    ?more: Array[Array[Record::Segment]], ?weight: Symbol
      #  ) -> PredictionCheck
      def self.of_recordings(place, before:, after:, more: [], weight: :wall)
        prediction = predicted(place, before + more, weight)
        # In an edited file, the line may be a different one after the change.
        places = [place, (place unless place.match?(GCCost::LINE))]
        spent = [before, after].zip(places).map do |side, side_place|
          side.map { |segments| GCCost.new(segments, weight: weight).spent(side_place) }
        end
        means = spent.map { |side| Statistics.mean(side.map(&:total_ns)) }
        enough = spent.all? { |side| side.size >= RUNS }
        shared = { prediction: prediction, before: means[0], after: means[1], sides: spent.map(&:size),
                   noise: enough ? :between_runs : :one_run, elsewhere: elsewhere(*spent) }
        enough ? several_runs(spent, shared) : one_run(spent, shared)
      end

      # Checks a prediction against a measurement of `compare`.
      # @param effect [Effect] of whole commands' time; the base has the place
      # @param before [Array<Array<Record::Segment>>] recordings of the base's command
      # @raise [UsageError] as of_recordings
      #: (String, Effect, before: Array[Array[Record::Segment]], ?weight: Symbol) -> PredictionCheck
      def self.of_effect(place, effect, before:, weight: :wall)
        prediction = predicted(place, before, weight)
        saving = saved(effect)
        verdict, reason = [:undecided, effect.reason || "compare could not say by how much the sides differ"]
        verdict, reason = judge(prediction.saving, saving) if saving.interval?
        new(prediction: prediction, saving: saving, before: effect.a, after: effect.b,
            sides: [effect.pairs, effect.pairs], noise: :measured, verdict: verdict, reason: reason)
      end

      # The prediction for one run, from several recordings of the same work.
      # @raise [UsageError] as of_recordings
      #: (String, Array[Array[Record::Segment]], Symbol) -> GCPrediction
      def self.predicted(place, recordings, weight)
        segments = recordings.each_with_index.flat_map do |one, number|
          one.map { |segment| segment.with(recording: number) }
        end
        cost = GCCost.new(segments, weight: weight)
        raise UsageError, NO_SAMPLES unless cost.samples?

        cost.predict(place).per(cost.recordings)
      end

      NO_SAMPLES = "--predicted: no samples in the recordings before the change: " \
                   "record one with `pitwall profile -- CMD`"
      private_constant :NO_SAMPLES

      def self.several_runs(spent, shared)
        saving, own, gc, runs = %i[total_ns own_ns gc_ns runs].map do |part|
          difference(*spent.map { |side| side.map(&part) })
        end
        verdict, reason = judge(shared[:prediction].saving, saving)
        new(**shared, saving: saving, own: own, gc: gc, runs: runs, verdict: verdict, reason: reason)
      end

      # Difference of two means with its interval (Welch 1947).
      def self.difference(before, after)
        a, b = [before, after].map { |values| Statistics.yuen(values, trim: 0) }
        squares = [a, b].map { |part| part.standard_error**2 }
        point = a.point - b.point
        return Estimate.new(point, point, point, LEVEL, a.n + b.n) if squares.sum.zero?

        degrees = squares.sum**2 / squares.zip([a, b]).sum { |square, part| square**2 / part.degrees }
        reach = -Statistics.student_quantile((1 - LEVEL) / 2, degrees) * Math.sqrt(squares.sum)
        Estimate.new(point, point - reach, point + reach, LEVEL, a.n + b.n)
      end

      def self.one_run(spent, shared)
        means = spent.map { |side| %i[total_ns own_ns gc_ns runs].map { |part| Statistics.mean(side.map(&part)) } }
        points = means[0].zip(means[1]).map { |a, b| a - b }
        reach = shared[:elsewhere] && [(shared[:elsewhere] - 1).abs, ONE_RUN].max * shared[:before]
        saving = Estimate.new(points[0], reach && points[0] - reach, reach && points[0] + reach, nil, spent.sum(&:size))
        own, gc, runs = points.drop(1).map { |point| Estimate.new(point, nil, nil, nil, saving.n) }
        verdict, reason = [:undecided, TOO_LITTLE_OUTSIDE]
        verdict, reason = judge(shared[:prediction].saving, saving) if reach
        new(**shared, saving: saving, own: own, gc: gc, runs: runs, verdict: verdict, reason: reason)
      end


      TOO_LITTLE_OUTSIDE = "too little ran outside the place to tell by it how much two runs differ"
      private_constant :TOO_LITTLE_OUTSIDE
      # Time outside the place, B/A; nil if there is too little of it.
      def self.elsewhere(before, after)
        total = Statistics.mean(before.map(&:total_ns))
        a, b = [before, after].map { |side| Statistics.mean(side.map { |spent| spent.own_ns - spent.place_ns }) }
        b / a if a > LITTLE * total
      end

      # The saving that an effect shows, in ns.
      def self.saved(effect)
        ratio = effect.ratio
        return Estimate.new(effect.a - effect.b, nil, nil, nil, effect.pairs) unless ratio&.interval?

        low, high = [ratio.high, ratio.low].map { |bound| effect.a * (1 - bound) }
        Estimate.new(effect.a * (1 - ratio.point), low, high, ratio.level, effect.pairs)
      end

      # Verdict by the intervals: the measured one is inside the predicted one, beyond it, or across one of its bounds.
      def self.judge(predicted, measured)
        return [:within, nil] if measured.low >= predicted.low && measured.high <= predicted.high
        return [:less, nil] if measured.high < predicted.low
        return [:more, nil] if measured.low > predicted.high

        [:undecided, "the measured saving is not precise enough: its interval contains a bound of the predicted one"]
      end
      private_class_method :several_runs, :difference, :one_run, :elsewhere, :saved, :judge
    end
  end
end
