# frozen_string_literal: true

require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/statistics"
require "pitwall/record/sample"

module Pitwall
  module Analyse
    # What the samples of one side say of each case: how long an iteration takes and how sure that is, the first run, memory, CPU,
    # waits. A process counts once, whatever it repeated: nearly all variance lies between processes.
    module BenchSummary
      LEVEL = 0.99

      # A metric of a case, per iteration.
      #
      # estimate: Estimate over processes. For clocks, and all metrics of whole commands, the median of the processes' medians; for
      #           counts and GC time, which come in rare lumps, the mean of their means. An exact count has low == high
      # best, worst: of all that was measured: batches of iterations, or whole commands
      # exact:    true where a count was the same in every batch of every process
      Value = Struct.new(:metric, :unit, :estimate, :best, :worst, :exact, keyword_init: true)

      # name:      of the case; for a whole command its command line
      # command:   true for a whole command: an "iteration" is a process, and nothing is known of first runs
      # processes, iterations: Integers, in all; warmup: iterations before the timed ones (median over processes)
      # values:    metric → Value, of Record::METRICS first
      # rate:      Estimate, iterations a second; nil where no time was measured
      # p95:       ns, of the batches (of the processes, for a command)
      # first_ns, first_ratio: the very first call (median over processes), and how many times an iteration that is; nil for commands
      # cpu_share: CPU time over wall time: below 1.0 it waits, above it runs in parallel
      # gc_share:  GC time over wall time
      # process_values: ns, the median of each process in the order they ran; batch_values: ns, all batches, ascending. For drawing
      Case = Struct.new(:name, :command, :processes, :iterations, :warmup, :values, :rate, :p95, :first_ns, :first_ratio, :cpu_share, :gc_share,
                        :process_values, :batch_values, keyword_init: true) do
        # Wall time of an iteration, ns.
        #: () -> Estimate?
        def time = values["wall"]&.estimate

        # The fastest batch (or process, for a command), ns an iteration.
        #: () -> Float?
        def best = values["wall"]&.best
      end

      # A line of a comparison between cases: effect is nil for the one the others are held against.
      Ranked = Struct.new(:case, :effect)

      # Come in rare lumps: a process's median would be 0.
      LUMPS = %w[gc_time].freeze
      private_constant :LUMPS

      module_function

      # @param samples of one side, in any order
      # @param names the cases in the order of their file; without it, in the order they were measured first
      #: (Array[Record::Sample], ?names: Array[String]?, ?level: Float) -> Array[Case]
      def of(samples, names: nil, level: LEVEL)
        groups = in_time(samples).group_by(&:name)
        names = groups.keys.sort_by { |name| [groups[name].first.block, groups[name].first.order, name] } unless names
        names.select { |name| groups.key?(name) }.map { |name| summarise(name, groups[name], level) }
      end

      # The cases for `compare!`, fastest first, each with the effect that names it as a side; no statistics of its own.
      # @param effects whose side is a case's name, or which are of another metric and left out
      #: (Array[Case], Array[Effect], ?metric: String) -> Array[Ranked]
      def ranked(cases, effects, metric: "wall")
        found = effects.select { |effect| effect.metric == metric }.to_h { |effect| [effect.side, effect] }
        cases.sort_by.with_index { |kase, at| [kase.time&.point || Float::INFINITY, at] }.map { |kase| Ranked.new(kase, found[kase.name]) }
      end

      # Samples in the order they were taken.
      # @api private
      #: (Array[Record::Sample]) -> Array[Record::Sample]
      def in_time(samples) = samples.sort_by { |sample| [sample.block, sample.order, sample.name, sample.side, sample.values.to_s] }

      def summarise(name, samples, level)
        command = samples.all? { |sample| sample.first_ns.nil? && sample.iterations == 1 }
        values = metrics(samples).to_h { |metric| [metric, value(metric, samples, command, level)] }
        wall = samples.map { |sample| sample["wall"].to_a }.reject(&:empty?)
        time = values["wall"]&.estimate
        first = middle(samples.filter_map(&:first_ns))
        Case.new(name: name, command: command, processes: samples.size, iterations: samples.sum { |sample| sample.iterations.to_i },
                 warmup: middle(samples.filter_map(&:warmup)), values: values, rate: time&.point&.positive? ? time.map { |ns| 1e9 / ns } : nil,
                 p95: wall.empty? ? nil : Statistics.quantile(wall.flatten, 0.95), first_ns: first, first_ratio: quotient(first, time&.point),
                 cpu_share: share("cpu", samples), gc_share: share("gc_time", samples),
                 process_values: samples.filter_map { |sample| ProcessStatistic.of(sample, "wall") }, batch_values: wall.flatten.sort)
      end
      private_class_method :summarise

      def metrics(samples)
        found = samples.flat_map { |sample| sample.values.reject { |_, values| values.empty? }.keys }.uniq
        (Record::METRICS.keys & found) + (found - Record::METRICS.keys).sort
      end
      private_class_method :metrics

      def value(metric, samples, command, level)
        known = Record::METRICS[metric]
        measured = samples.reject { |sample| sample[metric].to_a.empty? }
        lists = measured.map { |sample| sample[metric] }
        all = lists.flatten
        exact = known&.kind != :clock && all.size > 1 && all.uniq.size == 1
        Value.new(metric: metric, unit: known&.unit || "count", exact: exact, best: all.min, worst: all.max,
                  estimate: exact ? Estimate.new(all.first, all.first, all.first, 1.0, lists.size) : estimate(metric, measured, command, level))
      end
      private_class_method :value

      def estimate(metric, samples, command, level)
        clock = Record::METRICS[metric]&.kind == :clock && !LUMPS.include?(metric)
        return Statistics.median_interval(samples.map { |sample| ProcessStatistic.of(sample, metric) }, level: level) if command || clock

        mean = Statistics.interval(samples.map { |sample| Statistics.mean(sample[metric]) }, level: level, trim: 0)
        mean.map { |number| [number, 0.0].max }
      end
      private_class_method :estimate

      # The median over processes of a metric's share of the wall time.
      def share(metric, samples)
        middle(samples.filter_map do |sample|
          part, whole = sample[metric].to_a, sample["wall"].to_a
          quotient(Statistics.mean(part), Statistics.mean(whole)) unless part.empty? || whole.empty?
        end)
      end
      private_class_method :share

      def middle(values) = values.empty? ? nil : Statistics.median(values)
      private_class_method :middle

      def quotient(part, whole) = part && whole&.positive? ? part.fdiv(whole) : nil
      private_class_method :quotient
    end
  end
end
