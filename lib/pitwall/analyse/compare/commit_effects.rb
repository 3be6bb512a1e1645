# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # What each commit of a range does: which of them changed the time, whether all together they do what their single
    # effects multiply to, and whether a commit does the same without the commits before it.
    #
    # It is computed from a {ComparisonReport} in which each commit is a case of its own. So a file of measurements
    # gives the same again.
    class CommitEffects
      # What was measured. name: of the case in the report · kind: "step" (a commit against the one before it),
      # "together" (the last against the first base) or "alone" (a commit on the first base)
      # kase: the benchmark's case · commits: Array of {"id", "title"}, more than one where some couldn't be measured
      Unit = Struct.new(:name, :kind, :kase, :commits, keyword_init: true) do
        #: (Hash[String, untyped]) -> Unit
        def self.read(facts)
          commits = Array(facts["commits"]).map { |commit| %w[id title].to_h { |key| [key, commit[key].to_s] } }
          new(name: facts["name"].to_s, kind: facts["kind"].to_s, kase: facts["case"].to_s, commits: commits)
        end

        #: () -> Hash[String, untyped]
        def to_facts = { "name" => name, "kind" => kind, "case" => kase, "commits" => commits }
      end

      # How two figures agree. difference: Estimate of their ratio
      # verdict: :agree, :differ, or :unclear where the interval is too wide for either
      Agreement = Struct.new(:difference, :verdict)

      # A commit on the base alone. unit: Unit · effect: Effect; nil where it can't be built · reason: String, why not
      # agreement: with its effect after the commits before it
      Alone = Struct.new(:unit, :effect, :reason, :agreement, keyword_init: true)

      # Of one case of the benchmark.
      #
      # steps:     Array of [Unit, Effect], the oldest first; effect is nil where nothing was measured
      # named:     those of steps that changed the time, the largest change first
      # together:  Effect of all commits; nil where there is one commit
      # product:   Estimate of the product of the single effects
      # agreement: of that product with the effect of all together
      # alone:     Array of Alone
      Outcome = Struct.new(:kase, :steps, :named, :together, :product, :agreement, :alone, keyword_init: true)

      # Level of the intervals of products and differences.
      LEVEL = 0.99
      # Differences that are surely smaller than this agree.
      CLOSE = 0.02
      private_constant :LEVEL, :CLOSE

      # @return [String] the range as typed
      attr_reader :range
      # @return [Array<Hash>] "id", "title" and "reason" of each commit that wasn't measured
      attr_reader :skipped
      # @return [Array<Outcome>]
      attr_reader :outcomes
      # @return [Array<Unit>]
      attr_reader :units

      # @param report [ComparisonReport] with a case for each unit
      # @param facts "range", "units", "skipped", "apart": an Array of units that can't be built, each with its "reason"
      #: (ComparisonReport, Hash[String, untyped]) -> void
      def initialize(report, facts)
        @report = report
        @range = facts["range"].to_s
        @skipped = Array(facts["skipped"])
        @units = Array(facts["units"]).map { |unit| Unit.read(unit) }
        @apart = Array(facts["apart"]).map { |unit| [Unit.read(unit), unit["reason"].to_s] }
        @effects = report.headline.to_h { |effect| [effect.name, effect] }
        @parts = {}
        @outcomes = @units.map(&:kase).uniq.map { |kase| outcome(kase) }
      end

      # Everything that a file has to keep.
      #: () -> Hash[String, untyped]
      def to_facts
        { "range" => range, "units" => units.map(&:to_facts), "skipped" => skipped,
          "apart" => @apart.map { |unit, reason| unit.to_facts.merge("reason" => reason) } }
      end

      # Units of commits that changed the time, and that have others before them: what they do alone isn't known yet.
      # @param most so many at most for each case, those with the largest effects
      #: (Integer) -> Array[Unit]
      def to_be_tried_alone(most)
        outcomes.flat_map { |outcome| outcome.named.map(&:first).reject { |unit| first?(unit) }.first(most) }
      end

      private

      def outcome(kase)
        own = @units.select { |unit| unit.kase == kase }
        steps = own.select { |unit| unit.kind == "step" }
        whole = own.find { |unit| unit.kind == "together" }
        product = product(steps)
        Outcome.new(kase: kase, steps: steps.map { |unit| [unit, @effects[unit.name]] }, named: named(steps),
                    together: whole && @effects[whole.name], product: product && interval(product),
                    agreement: agreement(whole && parts(whole), product), alone: alone(kase, own, steps))
      end

      def first?(unit) = @units.find { |each| each.kind == "step" && each.kase == unit.kase } == unit

      def named(steps)
        found = steps.map { |unit| [unit, @effects[unit.name]] }
        found = found.select { |_, effect| effect&.decided? && effect.verdict != :same && !effect.below_margin }
        found.sort_by { |_, effect| -Math.log(effect.ratio&.point || 1).abs }
      end

      def alone(kase, own, steps)
        tried = own.select { |unit| unit.kind == "alone" }.map do |unit|
          placed = steps.find { |step| step.commits == unit.commits }
          Alone.new(unit: unit, effect: @effects[unit.name], agreement: agreement(parts(unit), placed && parts(placed)))
        end
        apart = @apart.select { |unit, _| unit.kase == kase }
        tried + apart.map { |unit, reason| Alone.new(unit: unit, reason: reason) }
      end

      # The mean logarithm of a unit's ratios, with its error; nil with too few pairs.
      def parts(unit)
        return @parts[unit.name] if @parts.key?(unit.name)

        ratios = ratios(unit)
        @parts[unit.name] = ratios.size >= Sequential::MIN_PAIRS ? Statistics.yuen(ratios) : nil
      end

      def ratios(unit)
        @pairs ||= @report.samples.group_by(&:name)
        @pairs.fetch(unit.name, []).group_by(&:block).each_value.filter_map do |block|
          one, other = @report.sides.map { |side| block.find { |sample| sample.side == side.name } }
          next unless one && other
          next unless [one, other].all? { |sample| ProcessStatistic.of(sample, @report.metric)&.positive? }

          ProcessStatistic.ratio(one, other, @report.metric)
        end
      end

      # The sum of logarithms; nil unless all are known.
      def product(steps)
        all = steps.map { |unit| parts(unit) }
        sum(all) if all.any? && all.all?
      end

      def agreement(one, other)
        return unless one && other

        minus = other.dup.tap { |parts| parts.point = -parts.point }
        difference = interval(sum([one, minus]))
        return Agreement.new(difference, :differ) if difference.low > 1 || difference.high < 1

        close = [difference.low, difference.high].all? { |ratio| Math.log(ratio).abs < Math.log(1 + CLOSE) }
        Agreement.new(difference, close ? :agree : :unclear)
      end

      # The sum of independent means. Its degrees of freedom are those of Welch (1947) and Satterthwaite.
      def sum(all)
        squares = all.map { |parts| parts.standard_error**2 }
        variance = squares.sum
        spread = squares.zip(all).sum { |square, parts| square**2 / parts.degrees }
        degrees = spread.positive? ? [(variance**2 / spread).floor, 1].max : all.map(&:degrees).min
        Statistics::Parts.new(all.sum(&:point), Math.sqrt(variance), degrees, all.map(&:n).min)
      end

      def interval(parts) = Statistics.interval(parts, level: LEVEL).map { |logarithm| Math.exp(logarithm) }
    end
  end
end
