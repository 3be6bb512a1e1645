# frozen_string_literal: true

require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/statistics"
require "pitwall/record/sample"

module Pitwall
  module Analyse
    # Summarises the samples of one side by case: time of an iteration with its interval, first run, memory, CPU time
    # and waits. A process counts once, however many batches it ran, because almost all variance is between processes.
    module BenchSummary
      LEVEL = 0.99

      # A metric of a case, per iteration.
      #
      # estimate: Estimate over processes. For clocks and for all metrics of whole commands, it is the median of the
      #           processes' medians. For counts and GC time, which come in rare lumps, it is the mean of the processes'
      #           means. An exact count has low == high
      # best, worst: of all batches, or of all processes for whole commands
      # exact:    true if a count was the same in every batch of every process
      Value = Struct.new(:metric, :unit, :estimate, :best, :worst, :exact, keyword_init: true)

      # A case.
      #
      # name:      of the case; for a whole command its command line
      # command:   true for a whole command. Its "iteration" is a process, and its first run is unknown
      # processes, iterations: Integers, of all samples
      # warmup:    iterations before the timed ones (median over processes)
      # values:    metric → Value, those of Record::METRICS first
      # rate:      Estimate, iterations per second; nil without times
      # p95:       ns, 95% quantile of the batches (of the processes for a command)
      # first_ns:  time of the very first call (median over processes); nil for commands
      # first_ratio: first_ns relative to an iteration; nil for commands
      # cpu_share: CPU time over wall time. Below 1.0 the case waits; above 1.0 it runs in parallel
      # gc_share:  GC time over wall time
      # process_values: ns, median of each process in the order they ran, for drawing
      # batch_values:   ns, all batches, ascending, for drawing
      Case = Struct.new(:name, :command, :processes, :iterations, :warmup, :values, :rate, :p95, :first_ns,
                        :first_ratio, :cpu_share, :gc_share, :process_values, :batch_values, keyword_init: true) do
        # Wall time of an iteration, in ns.
        #: () -> Estimate?
        def time = values["wall"]&.estimate

        # Time of an iteration in the fastest batch, in ns (of the fastest process for a command).
        #: () -> Float?
        def best = values["wall"]&.best
      end

      # A line of a comparison between cases. effect: relative to the base; nil for the base itself.
      Ranked = Struct.new(:case, :effect)

      # Metrics that come in rare lumps. The median of a process would be 0.
      LUMPS = %w[gc_time].freeze
      private_constant :LUMPS

      module_function

      # Summaries of all cases.
      # @param samples of one side, in any order
      # @param names the cases in the order of their file; nil: in the order of their first samples
      #: (Array[Record::Sample], ?names: Array[String]?, ?level: Float) -> Array[Case]
      def of(samples, names: nil, level: LEVEL)
        groups = in_time(samples).group_by(&:name)
        names = groups.keys.sort_by { |name| [groups[name].first.block, groups[name].first.order, name] } unless names
        names.select { |name| groups.key?(name) }.map { |name| summarise(name, groups[name], level) }
      end

      # The cases of a `compare!`, fastest first, each with its effect. Computes no statistics of its own.
      # @param effects their sides are names of cases; those of other metrics are left out
      #: (Array[Case], Array[Effect], ?metric: String) -> Array[Ranked]
      def ranked(cases, effects, metric: "wall")
        by_side = effects.select { |effect| effect.metric == metric }.to_h { |effect| [effect.side, effect] }
        sorted = cases.sort_by.with_index { |kase, at| [kase.time&.point || Float::INFINITY, at] }
        sorted.map { |kase| Ranked.new(kase, by_side[kase.name]) }
      end

      # Samples in the order they were measured.
      # @api private
      #: (Array[Record::Sample]) -> Array[Record::Sample]
      def in_time(samples)
        samples.sort_by { |sample| [sample.block, sample.order, sample.name, sample.side, sample.values.to_s] }
      end

      def summarise(name, samples, level)
        command = samples.all? { |sample| sample.first_ns.nil? && sample.iterations == 1 }
        values = metrics(samples).to_h { |metric| [metric, value(metric, samples, command, level)] }
        wall = samples.map { |sample| sample["wall"].to_a }.reject(&:empty?)
        time = values["wall"]&.estimate
        first = middle(samples.filter_map(&:first_ns))
        Case.new(
          name: name, command: command, processes: samples.size,
          iterations: samples.sum { |sample| sample.iterations.to_i }, warmup: middle(samples.filter_map(&:warmup)),
          values: values, rate: time&.point&.positive? ? time.map { |ns| 1e9 / ns } : nil,
          p95: wall.empty? ? nil : Statistics.quantile(wall.flatten, 0.95),
          first_ns: first, first_ratio: quotient(first, time&.point),
          cpu_share: share("cpu", samples), gc_share: share("gc_time", samples),
          process_values: samples.filter_map { |sample| ProcessStatistic.of(sample, "wall") },
          batch_values: wall.flatten.sort
        )
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
        estimate = if exact then Estimate.new(all.first, all.first, all.first, 1.0, lists.size)
                   else estimate(metric, measured, command, level)
                   end
        Value.new(metric: metric, unit: known&.unit || "count", exact: exact, best: all.min, worst: all.max,
                  estimate: estimate)
      end
      private_class_method :value

      def estimate(metric, samples, command, level)
        clock = Record::METRICS[metric]&.kind == :clock && !LUMPS.include?(metric)
        if command || clock
          return Statistics.median_interval(samples.map { |sample| ProcessStatistic.of(sample, metric) }, level: level)
        end

        mean = Statistics.interval(samples.map { |sample| Statistics.mean(sample[metric]) }, level: level, trim: 0)
        mean.map { |number| [number, 0.0].max }
      end
      private_class_method :estimate

      # Median over processes of a metric's share of the wall time.
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
