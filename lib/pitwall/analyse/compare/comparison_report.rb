# frozen_string_literal: true

require "pitwall/analyse/compare/bench_cases"
require "pitwall/analyse/compare/comparison"
require "pitwall/analyse/compare/instructions"
require "pitwall/analyse/compare/measurement_warnings"
require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/sequential"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Everything that views of `pitwall compare` show.
    #
    # effects:  Array of Effect, of every case, side and metric; the headline's metric is settings["metric"], or "wall"
    # samples:  Array of Record::Sample, from which effects were computed
    # sides:    Array of Pitwall::Bench::Subject, the base first; any objects with `name` and `facts` will do
    # settings: Hash of String → settings of the measurement: "metric", "alpha", "margin", "looks", "budget_s"…
    # host:     Hash of String → facts of the host: "kernel", "cpu", "cores", "memory_bytes"
    # warnings: Array of Warning
    # losses:   Hash of String → Integer, numbers of measurements that were not used: {"failed_blocks" => 1}
    # control:  Array of Effect of the base against itself; nil without an A/A control
    # duration_ns: duration of the whole measurement
    # command:  String, the command line that repeats the measurement
    # predictions: Hash of a side's name → PredictionCheck; nil if there is no prediction
    # growths:  Array of Sweep for cases at several N; nil if there are none
    # commits:  CommitEffects where the cases are commits of a range; else nil
    # search:   Hash, see CommitSearch#to_facts, where a commit was searched; else nil
    # gate:     Array of GateResult, one for each condition; nil without a gate
    # why:      Hash of a side's name → ProfileChange::Result against the base; nil without profiles
    ComparisonReport = Struct.new(:effects, :samples, :sides, :settings, :host, :warnings, :losses, :control,
                                  :duration_ns, :command, :why, :growths, :predictions, :commits, :search, :gate,
                                  keyword_init: true) do
      # The report of samples. It runs the sequential procedure again, block by block. So a saved measurement gives the
      # same result as it gave live.
      # @param cases [Array<Record::Case>] in the order of their file
      # @param plans [Hash<String, Integer>] name of a case → largest number of pairs
      # @param sides the base first; samples of {CONTROL} are the base's again
      # @param counts [Array<Record::Measurements::Counts>] of runs of their own
      # @param readings state of the host during the measurement, for warnings
      # @param more fields that do not come from samples: host, losses, duration_ns, command
      #: (
      #    Array[Record::Sample], cases: Array[Record::Case], plans: Hash[String, Integer], sides: Array[untyped],
      #    settings: Hash[String, untyped], ?counts: Array[Record::Measurements::Counts], **untyped
      #  ) -> ComparisonReport
      def self.of(samples, cases:, plans:, sides:, settings:, counts: [], readings: {}, **more)
        control, own = samples.partition { |sample| sample.side == ComparisonReport::CONTROL }
        names = sides.map(&:name)
        comparison = Comparison.new(**{ alpha: settings["alpha"], margin: settings["margin"] }.compact)
        effects = own.group_by(&:name).flat_map { |name, taken| play(taken, comparison, plans[name], names) }
        base = own.select { |sample| sample.side == names.first }
        if control.any?
          control_effects = comparison.effects(base + control, base: names.first, sides: [ComparisonReport::CONTROL])
        end
        growths = names.drop(1).flat_map { |side| BenchCases.between(own, cases, base: names.first, side: side) }
        all_settings = { "metric" => comparison.headline, "looks" => Sequential::LOOKS }.merge(settings)
        report = new(effects: effects, samples: own, sides: sides, settings: all_settings, control: control_effects,
                     growths: growths, **more)
        counts.each { |counted| report.add_counts(counted) }
        report.warnings = MeasurementWarnings.of(own, host: readings, settings: settings, advised: report.more_known?)
        report
      end

      # Effects of one case by the sequential procedure.
      # @api private
      def self.play(samples, comparison, planned, names)
        blocks = samples.group_by(&:block).sort.map(&:last)
        plan = Sequential::Plan.new(planned || blocks.size)
        procedure = Sequential::Procedure.new(comparison: comparison, plan: plan, base: names.first,
                                              sides: names.drop(1))
        blocks.each { |block| break if procedure.add(block)&.stop? }
        procedure.finish.effects
      end
      private_class_method :play

      # Adds the effects of counts that runs of their own gave.
      # @param counted [Record::Measurements::Counts]
      #: (untyped) -> void
      def add_counts(counted)
        base, *others = sides.map(&:name)
        parameters = { alpha: settings["alpha"], margin: settings["margin"] }.compact
        others.each do |side|
          a, b = counted.sides.values_at(base, side)
          next unless a && b

          effects << Instructions.effect(a, b, name: counted.name, base: base, side: side, metric: counted.metric,
                                               **parameters)
        end
      end

      # The metric that decides a case.
      #: () -> String
      def metric = settings&.fetch("metric", nil) || "wall"

      # @return [Array<Effect>] of the deciding metric, in the order of measurement
      #: () -> Array[Effect]
      def headline = effects.select { |effect| effect.metric == metric }

      # @return [Array<Effect>] of all other metrics
      #: () -> Array[Effect]
      def other_effects = effects.reject { |effect| effect.metric == metric }

      # @return [Array<String>] names of the cases
      #: () -> Array[String]
      def cases = effects.map(&:name).uniq

      # Side → median of each process, for drawing. Sides without samples are left out.
      #: (String, ?String) -> Hash[String, Array[Float]]
      def medians(name, of = metric)
        own = samples.select { |sample| sample.name == name }.group_by(&:side)
        medians = sides.map(&:name).to_h do |side|
          [side, own.fetch(side, []).filter_map { |sample| ProcessStatistic.of(sample, of.delete_suffix("_mean")) }]
        end
        medians.reject { |_, values| values.empty? }
      end

      # Number of further pairs that would probably decide an undecided effect. They are enough to detect the margin, or
      # the effect itself if that is larger. The smallest detectable effect is proportional to 1/√pairs.
      # @return [Integer, nil] nil if it is decided, exact, refused for a reason, or needs too many pairs
      #: (Effect) -> Integer?
      def pairs_to_settle(effect)
        smallest = effect.smallest_detectable
        return unless effect.verdict == :undecided && effect.reason.nil? && smallest && effect.pairs.to_i.positive?

        aim = [effect.margin, effect.ratio&.point&.-(1)&.abs].compact.max.to_f
        return unless aim.positive?

        more = (effect.pairs * (smallest / aim)**2).ceil - effect.pairs
        [more, ComparisonReport::LOOK].max if more <= ComparisonReport::REACH * effect.pairs
      end

      # Whether any undecided effect says how many more pairs it needs. Warnings then do not advise longer measurements.
      #: () -> bool
      def more_known?
        headline.any? do |effect|
          next unless effect.verdict == :undecided

          effect.reason ? effect.reason.include?("needed") : pairs_to_settle(effect)
        end
      end

      # Time of so many more pairs of an effect's case, in ns. Assumes that each case took an equal share of the time.
      #: (Effect, Integer) -> Integer?
      def settling_ns(effect, pairs) = case_ns && (case_ns / effect.pairs * pairs).round

      # Mean time of a case, in ns.
      #: () -> Float?
      def case_ns = duration_ns && duration_ns.fdiv([cases.size, 1].max)

      # Counters of the VM's caches that the Ruby of a side does not have.
      #: (String) -> Array[String]
      def not_counted(side)
        metrics = samples.to_a.select { |sample| sample.side == side }.flat_map { |sample| sample.values.keys }
        Record.stat_counters_missing(metrics.uniq)
      end
    end

    # Name of the side that is the base again.
    ComparisonReport::CONTROL = "A/A control"
    # Fewest pairs between two looks.
    ComparisonReport::LOOK = 8
    # Measuring longer is advised only up to so many times the pairs.
    ComparisonReport::REACH = 100
  end
end
