# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/gc/gc_cost"
require "pitwall/analyse/statistics/statistics"
require "pitwall/errors"

module Pitwall
  module Analyse
    # What removing a place was predicted to save, against what the program saved when it was removed.
    #
    # With two recordings a side or more the doubt of what happened is Welch's interval of the difference of the means. One
    # recording a side says nothing of how runs differ. What can be seen is how the time *outside* the place differs, where
    # nothing was to change: by so much of the whole the saving may be wrong, and by ONE_RUN of it at least.
    #
    # prediction: GCPrediction of one run · saving, own, gc, runs: Estimates of what happened, B taken from A, in ns and GC runs; level is nil
    # where the doubt is that rough; own, gc and runs are nil where they weren't measured · before, after: ns of A and B · sides: how many runs each ·
    # noise: :between_runs, :one_run or :measured (by `compare`) · elsewhere: time outside the place as B/A, nil: not told ·
    # verdict: :within, :less, :more or :undecided · reason: why it is undecided, else nil.
    PredictionCheck = Struct.new(:prediction, :saving, :own, :gc, :runs, :before, :after, :sides, :noise, :elsewhere, :verdict, :reason, keyword_init: true)

    class PredictionCheck
      LEVEL = 0.95
      # What two runs of the same program differ by where nothing is known of that, as a part of the whole.
      ONE_RUN = 0.03
      # A part of the whole below which the time outside the place says nothing of the machine.
      LITTLE = 0.05
      # Recordings a side from which their differences tell the noise.
      RUNS = 2
      # What a recording took; place_ns is what of own_ns lies in the place.
      Spent = Struct.new(:own_ns, :gc_ns, :runs, :place_ns) do
        #: () -> Integer
        def total_ns = own_ns + gc_ns
      end
      private_constant :LITTLE

      # @param before [Array<Array<Record::Segment>>] recordings with the place, each its segments
      # @param after [Array<Array<Record::Segment>>] recordings without it
      # @param more [Array<Array<Record::Segment>>] further recordings of the same work as `before`, for the prediction only
      # @raise [UsageError] no such place, no places of allocation, no samples
      #: (String, before: Array[Array[Record::Segment]], after: Array[Array[Record::Segment]], ?more: Array[Array[Record::Segment]], ?weight: Symbol) -> PredictionCheck
      def self.of_recordings(place, before:, after:, more: [], weight: :wall)
        prediction = predicted(place, before + more, weight)
        # A line of an edited file may be another one now.
        places = [place, (place unless place.match?(GCCost::LINE))]
        spent = [before, after].zip(places).map { |side, where| side.map { |segments| GCCost.new(segments, weight: weight).spent(where) } }
        means = spent.map { |side| Statistics.mean(side.map(&:total_ns)) }
        enough = spent.all? { |side| side.size >= RUNS }
        shared = { prediction: prediction, before: means[0], after: means[1], sides: spent.map(&:size), noise: enough ? :between_runs : :one_run,
                   elsewhere: elsewhere(*spent) }
        enough ? between(spent, shared) : once(spent, shared)
      end

      # @param effect [Effect] what `compare` measured of whole commands, by a clock; the base has the place
      # @param before [Array<Array<Record::Segment>>] recordings of the base's command
      # @raise [UsageError] as above
      #: (String, Effect, before: Array[Array[Record::Segment]], ?weight: Symbol) -> PredictionCheck
      def self.of_effect(place, effect, before:, weight: :wall)
        prediction = predicted(place, before, weight)
        saving = saved(effect)
        verdict, reason = saving.interval? ? judge(prediction.saving, saving) : [:undecided, effect.reason || "compare could not say by how much the sides differ"]
        new(prediction: prediction, saving: saving, before: effect.a, after: effect.b, sides: [effect.pairs, effect.pairs], noise: :measured,
            verdict: verdict, reason: reason)
      end

      # Of one run, from several recordings of the same work.
      # @raise [UsageError] as above
      #: (String, Array[Array[Record::Segment]], Symbol) -> GCPrediction
      def self.predicted(place, recordings, weight)
        cost = GCCost.new(recordings.each_with_index.flat_map { |segments, number| segments.map { |segment| segment.with(recording: number) } }, weight: weight)
        raise UsageError, NO_SAMPLES unless cost.samples?

        cost.predict(place).per(cost.recordings)
      end

      NO_SAMPLES = "--predicted: no samples in the recordings before the change: record one with `pitwall profile -- CMD`"
      private_constant :NO_SAMPLES

      def self.between(spent, shared)
        saving, own, gc, runs = %i[total_ns own_ns gc_ns runs].map { |part| difference(*spent.map { |side| side.map(&part) }) }
        verdict, reason = judge(shared[:prediction].saving, saving)
        new(**shared, saving: saving, own: own, gc: gc, runs: runs, verdict: verdict, reason: reason)
      end

      # Welch 1947.
      def self.difference(before, after)
        a, b = [before, after].map { |values| Statistics.yuen(values, trim: 0) }
        squares = [a, b].map { |part| part.standard_error**2 }
        point = a.point - b.point
        return Estimate.new(point, point, point, LEVEL, a.n + b.n) if squares.sum.zero?

        degrees = squares.sum**2 / squares.zip([a, b]).sum { |square, part| square**2 / part.degrees }
        reach = -Statistics.student_quantile((1 - LEVEL) / 2, degrees) * Math.sqrt(squares.sum)
        Estimate.new(point, point - reach, point + reach, LEVEL, a.n + b.n)
      end

      def self.once(spent, shared)
        means = spent.map { |side| %i[total_ns own_ns gc_ns runs].map { |part| Statistics.mean(side.map(&part)) } }
        points = means[0].zip(means[1]).map { |a, b| a - b }
        reach = shared[:elsewhere] && [(shared[:elsewhere] - 1).abs, ONE_RUN].max * shared[:before]
        saving = Estimate.new(points[0], reach && points[0] - reach, reach && points[0] + reach, nil, spent.sum(&:size))
        own, gc, runs = points.drop(1).map { |point| Estimate.new(point, nil, nil, nil, saving.n) }
        verdict, reason = reach ? judge(shared[:prediction].saving, saving) : [:undecided, "hardly anything ran outside the place by which one run could be held against the other"]
        new(**shared, saving: saving, own: own, gc: gc, runs: runs, verdict: verdict, reason: reason)
      end

      # What ran outside the place, after over before; nil where that is too little to tell.
      def self.elsewhere(before, after)
        total = Statistics.mean(before.map(&:total_ns))
        a, b = [before, after].map { |side| Statistics.mean(side.map { |spent| spent.own_ns - spent.place_ns }) }
        b / a if a > LITTLE * total
      end

      def self.saved(effect)
        ratio = effect.ratio
        return Estimate.new(effect.a - effect.b, nil, nil, nil, effect.pairs) unless ratio&.interval?

        low, high = [ratio.high, ratio.low].map { |bound| effect.a * (1 - bound) }
        Estimate.new(effect.a * (1 - ratio.point), low, high, ratio.level, effect.pairs)
      end

      # By the intervals: what happened lies inside, or beyond, or across an end.
      def self.judge(said, found)
        return [:within, nil] if found.low >= said.low && found.high <= said.high
        return [:less, nil] if found.high < said.low
        return [:more, nil] if found.low > said.high

        [:undecided, "what happened is not known well enough: its interval reaches across an end of the predicted one"]
      end
      private_class_method :between, :difference, :once, :elsewhere, :saved, :judge
    end
  end
end
