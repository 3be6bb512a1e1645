# frozen_string_literal: true

require "pitwall/analyse/compare/bench_cases"
require "pitwall/analyse/compare/comparison"
require "pitwall/analyse/compare/measurement_warnings"
require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/sequential"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # All that a view of `pitwall compare` shows.
    #
    # effects:  Array of Effect, of every case, side and metric; the headline's metric is settings["metric"], or "wall"
    # samples:  Array of Record::Sample the effects were computed from
    # sides:    Array that answers `name` and `facts` (Hash of String → String), the base first: Pitwall::Bench::Subject
    # settings: Hash of String → what the run was asked for: "metric", "alpha", "margin", "looks", "budget_s"…
    # host:     Hash of String → what the host is: "kernel", "cpu", "cores", "memory_bytes"
    # warnings: Array of Warning
    # losses:   Hash of String → Integer, what was measured but not used: {"failed_blocks" => 1}
    # control:  Array of Effect of the base against itself, or nil where no A/A control ran
    # duration_ns: of the whole measurement
    # command:  String, the command line that repeats it
    # predictions: Hash of a side's name → PredictionCheck, or nil where none was asked for
    # growths:  Array of Sweep where the cases are one at several N, or nil
    # why:      Hash of a side's name → ProfileChange::Result against the base, or nil where no profiles were asked for
    ComparisonReport = Struct.new(:effects, :samples, :sides, :settings, :host, :warnings, :losses, :control, :duration_ns,
                                  :command, :why, :growths, :predictions, keyword_init: true) do
      # All that samples say. The sequential procedure is played through again, block by block, so a saved run gives what it gave live.
      # @param cases in the order of their file: Record::Case
      # @param plans [Hash<String, Integer>] name of a case → the most pairs it might have taken
      # @param sides the base first; samples of {CONTROL} are the base's once more
      # @param readings of the host while it measured, for the warnings
      # @param more fields that samples don't tell: host, losses, duration_ns, command
      #: (Array[Record::Sample], cases: Array[Record::Case], plans: Hash[String, Integer], sides: Array[untyped], settings: Hash[String, untyped], **untyped) -> ComparisonReport
      def self.of(samples, cases:, plans:, sides:, settings:, readings: {}, **more)
        control, own = samples.partition { |sample| sample.side == ComparisonReport::CONTROL }
        names = sides.map(&:name)
        comparison = Comparison.new(**{ alpha: settings["alpha"], margin: settings["margin"] }.compact)
        effects = own.group_by(&:name).flat_map { |name, taken| play(taken, comparison, plans[name], names) }
        base = own.select { |sample| sample.side == names.first }
        new(effects: effects, samples: own, sides: sides, settings: { "metric" => comparison.headline, "looks" => Sequential::LOOKS }.merge(settings),
            control: (comparison.effects(base + control, base: names.first, sides: [ComparisonReport::CONTROL]) if control.any?),
            growths: names.drop(1).flat_map { |side| BenchCases.between(own, cases, base: names.first, side: side) }, **more).tap do |report|
          report.warnings = MeasurementWarnings.of(own, host: readings, settings: settings, advised: report.more_known?)
        end
      end

      # @api private
      def self.play(samples, comparison, planned, names)
        blocks = samples.group_by(&:block).sort.map(&:last)
        procedure = Sequential::Procedure.new(comparison: comparison, plan: Sequential::Plan.new(planned || blocks.size), base: names.first, sides: names.drop(1))
        blocks.each { |block| break if procedure.add(block)&.stop? }
        procedure.finish.effects
      end
      private_class_method :play

      # The metric whose verdict is the headline.
      #: () -> String
      def metric = settings&.fetch("metric", nil) || "wall"

      # @return [Array<Effect>] of the headline's metric, in the order of measurement
      #: () -> Array[Effect]
      def headline = effects.select { |effect| effect.metric == metric }

      # @return [Array<Effect>] of all other metrics
      #: () -> Array[Effect]
      def beside = effects.reject { |effect| effect.metric == metric }

      # @return [Array<String>] names of the cases
      #: () -> Array[String]
      def cases = effects.map(&:name).uniq

      # Side → the median of each process, for drawing; sides without samples are left out.
      #: (String, ?String) -> Hash[String, Array[Float]]
      def medians(name, of = metric)
        own = samples.select { |sample| sample.name == name }.group_by(&:side)
        medians = sides.map(&:name).to_h do |side|
          [side, own.fetch(side, []).filter_map { |sample| ProcessStatistic.of(sample, of.delete_suffix("_mean")) }]
        end
        medians.reject { |_, values| values.empty? }
      end

      # Further pairs after which an undecided effect would probably be decided: enough to see the margin, or the effect
      # itself if that is larger. The smallest detectable effect shrinks with the square root of the pairs.
      # @return [Integer, nil] nil where it is decided, exact, refused for a reason or beyond reach
      #: (Effect) -> Integer?
      def pairs_to_settle(effect)
        found = effect.smallest_detectable
        return unless effect.verdict == :undecided && effect.reason.nil? && found && effect.pairs.to_i.positive?

        aim = [effect.margin, effect.ratio&.point&.-(1)&.abs].compact.max.to_f
        return unless aim.positive?

        more = (effect.pairs * (found / aim)**2).ceil - effect.pairs
        [more, ComparisonReport::LOOK].max if more <= ComparisonReport::REACH * effect.pairs
      end

      # Whether the undecided are told how much more it takes: then no warning need guess.
      #: () -> bool
      def more_known?
        headline.any? { |effect| effect.verdict == :undecided && (effect.reason ? effect.reason.include?("needed") : pairs_to_settle(effect)) }
      end

      # What so many more pairs of its case would take, if each case took an equal part of the whole.
      #: (Effect, Integer) -> Integer?
      def settling_ns(effect, pairs) = case_ns && (case_ns / effect.pairs * pairs).round

      # What a case took.
      #: () -> Float?
      def case_ns = duration_ns && duration_ns.fdiv([cases.size, 1].max)
    end

    # The side that is the base once more.
    ComparisonReport::CONTROL = "A/A control"
    # Pairs between two looks, at least.
    ComparisonReport::LOOK = 8
    # Beyond so many times the pairs there are, more measuring is no advice.
    ComparisonReport::REACH = 100
  end
end
