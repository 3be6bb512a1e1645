# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # The one number that stands for a process: of times the median of its batches, which a disturbed batch does not move.
    #
    # Garbage collection is left out of that median and its mean added. It comes in lumps: where one batch holds one run of it and the next
    # two, the median stands on the edge between both kinds, and a change of 2% can move it by a whole run, either way.
    module ProcessStatistic
      # Times that hold the collector's.
      WITH_GC = %w[wall cpu].freeze
      # How much processes may speed up or slow down from the first to the second half of their timed batches.
      DRIFT = 0.02
      private_constant :WITH_GC, :DRIFT

      module_function

      # @return [Float, nil] nil where the process has no such metric
      #: (Record::Sample, String) -> Float?
      def of(sample, metric)
        values = sample[metric].to_a
        return if values.empty?
        return Statistics.median(values) unless collected?(sample, metric)

        Statistics.median(outside_gc(sample, metric)) + Statistics.mean(sample["gc_time"])
      end

      # How much more the second of two processes took, as a logarithm.
      #
      # Where they ran in turns, it is the median of what each of its batches took against the other's batch beside it: what slowed the
      # core for a moment slowed both. (Measured on a shared core: the trimmed standard deviation between pairs was 0.65%, and 1.4% where
      # the medians of both processes were compared.) Garbage collection is left out of that and its means added, as in {of}.
      # @return [Float]
      #: (Record::Sample, Record::Sample, String) -> Float
      def ratio(one, other, metric)
        batches = [one, other].map { |sample| outside_gc(sample, metric) }
        return Math.log(of(other, metric).fdiv(of(one, metric))) unless beside?(one, other, batches)

        apart = Statistics.median(batches.inject(:zip).map { |before, after| Math.log(after.fdiv(before)) })
        base = Statistics.median(batches.first)
        gc = [one, other].map { |sample| collected?(sample, metric) ? Statistics.mean(sample["gc_time"]) : 0 }
        Math.log(((base * Math.exp(apart)) + gc.last) / (base + gc.first))
      end

      # How a process changed from the first to the second half of its batches, as a logarithm, apart from garbage collection.
      # @return [Float, nil] nil for fewer than four batches, and for times that are none
      #: (Record::Sample) -> Float?
      def trend(sample)
        values = outside_gc(sample, "wall")
        return unless values.size >= 4 && values.all? { |value| time?(value) && value.positive? }

        half = values.size / 2
        Math.log(Statistics.median(values.last(half)) / Statistics.median(values.first(half)))
      end

      # By how much the processes still sped up or slowed down while they were timed, where that is beyond DRIFT and beyond doubt.
      # @param fewest [Integer] processes that can tell
      # @return [Float, nil] 0.05: slower by 5% in the second half
      #: (Array[Record::Sample], level: Float, fewest: Integer) -> Float?
      def drift(samples, level:, fewest:)
        trends = samples.filter_map { |sample| trend(sample) }
        return if trends.size < fewest

        change = Statistics.interval(trends, level: level).map { |logarithm| Math.exp(logarithm) - 1 }
        change.point if change.point.abs > DRIFT && (change.low.positive? || change.high.negative?)
      end

      # @api private
      def time?(value) = value.is_a?(Numeric) && value.real? && value.finite? && value >= 0

      # @api private
      def beside?(one, other, batches)
        [one, other].all? { |sample| sample.notes.to_a.include?(:in_turns) } && batches.map(&:size).uniq.size == 1 &&
          batches.flatten.all? { |value| time?(value) && value.positive? }
      end

      # @api private
      def outside_gc(sample, metric)
        values = sample[metric].to_a
        collected?(sample, metric) ? values.zip(sample["gc_time"]).map { |value, gc| value > gc ? value - gc : 0 } : values
      end

      # @api private
      def collected?(sample, metric)
        gc = sample["gc_time"].to_a
        values = sample[metric].to_a
        WITH_GC.include?(metric) && gc.size > 1 && gc.size == values.size && (values + gc).all? { |value| time?(value) } && gc.any?(&:positive?)
      end
    end
  end
end
