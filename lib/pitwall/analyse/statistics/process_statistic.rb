# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # The number that stands for a process in a comparison. For times it is the median of the process's batches, because
    # one disturbed batch does not move a median.
    #
    # Garbage collection is excluded from this median, and its mean is added. It comes in lumps:
    # some batches contain one GC run and others two. The median is then on the edge between both kinds. A change of
    # 2% can move it by a whole run.
    module ProcessStatistic
      # Times that include garbage collection.
      WITH_GC = %w[wall cpu].freeze
      # Change from the first to the second half of a process's batches that is still tolerated.
      DRIFT = 0.02
      private_constant :WITH_GC, :DRIFT

      module_function

      # The process's number for a metric, in the metric's unit.
      # @return [Float, nil] nil if the process has no such metric
      #: (Record::Sample, String) -> Float?
      def of(sample, metric)
        values = sample[metric].to_a
        return if values.empty?
        return Statistics.median(values) unless collected?(sample, metric)

        Statistics.median(outside_gc(sample, metric)) + Statistics.mean(sample["gc_time"])
      end

      # Logarithm of the ratio of two processes' numbers: ln(other / one).
      #
      # If the processes ran their batches in turns, it is the median of the ratios of neighbouring batches.
      # A disturbance of the core slows both neighbours. Measured on a shared core, the trimmed standard deviation
      # between pairs was 0.65% this way, and 1.4% with the ratio of the medians.
      # Garbage collection is excluded from the median, and its means are added, as in {of}.
      # @return [Float]
      #: (Record::Sample, Record::Sample, String) -> Float
      def ratio(one, other, metric)
        batches = [one, other].map { |sample| outside_gc(sample, metric) }
        return Math.log(of(other, metric).fdiv(of(one, metric))) unless in_turns?(one, other, batches)

        change = Statistics.median(batches.inject(:zip).map { |before, after| Math.log(after.fdiv(before)) })
        base = Statistics.median(batches.first)
        gc = [one, other].map { |sample| collected?(sample, metric) ? Statistics.mean(sample["gc_time"]) : 0 }
        Math.log(((base * Math.exp(change)) + gc.last) / (base + gc.first))
      end

      # Logarithm of a process's change from the first to the second half of its batches, without garbage collection.
      # @return [Float, nil] nil for fewer than four batches, and for invalid times
      #: (Record::Sample) -> Float?
      def trend(sample)
        values = outside_gc(sample, "wall")
        return unless values.size >= 4 && values.all? { |value| time?(value) && value.positive? }

        half = values.size / 2
        Math.log(Statistics.median(values.last(half)) / Statistics.median(values.first(half)))
      end

      # Change of processes while they were timed, if it is above DRIFT and its interval excludes 0.
      # @param fewest [Integer] fewest processes for a result
      # @return [Float, nil] 0.05: the second half was slower by 5%
      #: (Array[Record::Sample], level: Float, fewest: Integer) -> Float?
      def drift(samples, level:, fewest:)
        trends = samples.filter_map { |sample| trend(sample) }
        return if trends.size < fewest

        change = Statistics.interval(trends, level: level).map { |logarithm| Math.exp(logarithm) - 1 }
        change.point if change.point.abs > DRIFT && (change.low.positive? || change.high.negative?)
      end

      # Whether a value is a valid time.
      # @api private
      def time?(value) = value.is_a?(Numeric) && value.real? && value.finite? && value >= 0

      # Whether two processes ran their batches in turns, and all batches have valid times.
      # @api private
      def in_turns?(one, other, batches)
        [one, other].all? { |sample| sample.notes.to_a.include?(:in_turns) } && batches.map(&:size).uniq.size == 1 &&
          batches.flatten.all? { |value| time?(value) && value.positive? }
      end

      # Values of the batches without the time of garbage collection.
      # @api private
      def outside_gc(sample, metric)
        values = sample[metric].to_a
        return values unless collected?(sample, metric)

        values.zip(sample["gc_time"]).map { |value, gc| value > gc ? value - gc : 0 }
      end

      # Whether a metric includes garbage collection whose times are known.
      # @api private
      def collected?(sample, metric)
        gc = sample["gc_time"].to_a
        values = sample[metric].to_a
        return false unless WITH_GC.include?(metric) && gc.size > 1 && gc.size == values.size

        (values + gc).all? { |value| time?(value) } && gc.any?(&:positive?)
      end
    end
  end
end
