# frozen_string_literal: true

require "pitwall/analyse/statistics/effect"
require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/sequential"
require "pitwall/analyse/statistics/statistics"
require "pitwall/record/sample"

module Pitwall
  module Analyse
    # From samples to effects: what each metric of each case did from one side to another, and how sure that is.
    #
    # Samples of one block make a pair. A process counts once; each pair gives d = ln(B/A) ({ProcessStatistic.ratio}, or of their means); the effect is the
    # trimmed mean of d with Yuen's interval. The doubt alpha is that of the headline metric of one case: several sides
    # share it evenly (Bonferroni), the other metrics that vary share the same again (Holm). Counts that repeat exactly have none.
    #
    # The verdict and the interval go together:
    # - slower/faster (more/fewer) where the look's boundary is passed. The interval printed is then the one of a single look, which never
    #   holds 1 there. It covers the truth as often as it says: the boundary's own would be about twice as wide and cover 99–100%
    #   at 95%, since the procedure stops as soon as it can;
    # - same where the 90% interval, by boundaries of its own for the looks, lies inside the margin: at most one in twenty effects as large
    #   as the margin is called the same. The interval printed is again that of a single look, and may lie beside 1;
    # - undecided otherwise: the interval is the boundary's own and holds 1.
    # An effect that is both real and inside the margin is slower/faster with `below_margin`.
    class Comparison
      # How often an effect of `smallest_detectable` would have been found.
      POWER = 0.8
      # The doubt of the interval that must lie inside the margin: two one-sided tests at 5%.
      SAME = 0.1
      # The share of processes that may say of themselves that they weren't steady.
      UNSTEADY = 1 / 3r
      # Made of "wall": what the median hides (a slow iteration in ten, garbage collection) is in the mean.
      MEAN = "wall_mean"

      # What it was made with.
      attr_reader :alpha, :margin, :headline

      #: (?alpha: Float, ?margin: Float, ?headline: String) -> void
      def initialize(alpha: 0.01, margin: 0.01, headline: "wall")
        raise ArgumentError, "alpha must lie between 0 and 1" unless alpha.positive? && alpha < 1
        raise ArgumentError, "the margin must be above 0" unless margin.positive?

        @alpha = alpha
        @margin = margin
        @headline = headline
      end

      # Cases in the order of their first samples, sides as given, the headline first.
      # @param look [Sequential::Look] which look at growing data this is; by default the only one
      #: (Array[Record::Sample], base: String, sides: Array[String], ?look: Sequential::Look) -> Array[Effect]
      def effects(samples, base:, sides:, look: Sequential::ONLY)
        samples.group_by(&:name).flat_map do |name, own|
          by_side = own.group_by(&:side)
          sides.flat_map do |side|
            pairs = pairs_of(by_side.fetch(base, []), by_side.fetch(side, []))
            judge(pairs, { name: name, base: base, side: side }, alpha / sides.size, look)
          end
        end
      end

      # Whether the headline of every case and side has a verdict.
      #: (Array[Effect]) -> bool
      def decided?(effects)
        heads = effects.select { |effect| effect.metric == headline }
        heads.any? && heads.all?(&:decided?)
      end

      private

      def pairs_of(of_base, of_side)
        firsts = of_base.group_by(&:block).transform_values(&:first)
        of_side.uniq(&:block).filter_map { |sample| [firsts[sample.block], sample] if firsts[sample.block] }.sort_by { |a, _| a.block }
      end

      def judge(pairs, names, alpha, look)
        unsteady = Steadiness.new(pairs, alpha).refusal
        measures = metrics(pairs).map { |metric| Measure.new(metric, pairs, unsteady: unsteady, headline: [headline, MEAN].include?(metric)) }
        vary = measures.select { |measure| measure.metric != headline && measure.noise && !measure.refusal }
        shares = Statistics.holm(vary.map(&:p_value), alpha: alpha) { |index, share| vary[index].beyond?(share, look) }
        measures.map do |measure|
          Judgement.new(measure, alpha: vary.include?(measure) ? shares[vary.index(measure)] : alpha, margin: margin, look: look).effect(names)
        end
      end

      # What both sides measured; the headline even where they didn't.
      def metrics(pairs)
        known = [headline, "wall", MEAN, *Record::METRICS.keys]
        found = [0, 1].map { |side| pairs.flat_map { |pair| pair[side].values.reject { |_, values| values.empty? }.keys }.uniq }.inject(:&)
        found << MEAN if found.include?("wall") && pairs.any? { |a, b| a["wall"].to_a.size > 1 && b["wall"].to_a.size > 1 }
        [headline] | found.sort_by { |metric| known.index(metric) || known.size }
      end

      # Whether the processes of a comparison had settled before they were timed.
      class Steadiness
        def initialize(pairs, alpha)
          @pairs = pairs
          @alpha = alpha
        end

        #: () -> String?
        def refusal
          return if @pairs.size < Sequential::MIN_PAIRS

          noted || drifting(0) || drifting(1)
        end

        private

        def noted
          samples = @pairs.flatten(1)
          unsteady = samples.count { |sample| sample.notes.to_a.include?(:unsteady) }
          "no steady state: #{unsteady} of #{samples.size} processes were not warm in time" if unsteady > UNSTEADY * samples.size
        end

        def drifting(side)
          change = ProcessStatistic.drift(@pairs.map { |pair| pair[side] }, level: 1 - @alpha, fewest: Sequential::MIN_PAIRS)
          format("no steady state: %s changed by %+.1f%% over the timed iterations", @pairs.first[side].side, 100 * change) if change
        end
      end
      private_constant :Steadiness

      # One metric of all pairs: whether it can be compared at all, and the effect on a logarithmic scale.
      class Measure
        # Processes differ in these by how often something rare happened: the median of a process would be 0 or a constant.
        MEANS = [MEAN, "gc_time"].freeze

        # No measurement is this large; squares and sums of smaller ones are finite.
        LARGEST = 1e100

        #: (untyped) -> bool
        def self.valid?(value) = value.is_a?(Numeric) && value.real? && value >= 0 && value < LARGEST

        attr_reader :metric, :pairs, :refusal

        def initialize(metric, pairs, unsteady:, headline:)
          @metric = metric
          source = metric == MEAN ? "wall" : metric
          pairs = pairs.reject { |pair| pair.any? { |sample| sample[source].to_a.empty? } }
          @pairs = pairs.map { |pair| pair.map { |sample| sample[source].to_a } }
          @samples = pairs
          @refusal = invalid(headline) || (unsteady if time?)
        end

        def unit = known ? known.unit : "count"
        def time? = unit == "ns"

        # Both sides repeat one value, each its own: in every batch, or in enough processes.
        def exact?
          return @exact if defined?(@exact)

          @exact = !refusal && pairs.any? && (count? || all.all?(&:zero?)) && [0, 1].all? { |side| repeats?(pairs.map { |pair| pair[side] }) }
        end

        # How the effect varies from pair to pair: Statistics::Parts of ln(B/A). nil where there is nothing to compare.
        def noise
          return @noise if defined?(@noise)

          @noise = (logarithms if pairs.any? && !exact? && !invalid?)
        end

        # Whether the effect has a size: not where a whole side is 0.
        def ratio? = a.positive? && b.positive?

        # What each side measured; nil where it makes no number.
        def a = @a ||= side(0)
        def b = @b ||= side(1)

        # Two-sided, as if there were one look.
        def p_value
          return 1.0 unless noise.standard_error
          return noise.point.zero? ? 1.0 : 0.0 if noise.standard_error.zero?

          2 * Statistics.student_cdf(-(noise.point / noise.standard_error).abs, noise.degrees)
        end

        # Whether the effect is beyond the boundary of a look.
        def beyond?(alpha, look)
          return false if noise.standard_error.nil? || pairs.size < Sequential::MIN_PAIRS

          noise.point.abs > look.boundary(alpha, noise.degrees) * noise.standard_error
        end

        private

        def known = @known ||= Record::METRICS[metric == MEAN ? "wall" : metric]
        def count? = known.nil? || known.kind == :count
        def all = @all ||= pairs.flatten
        def invalid? = !@invalid.nil?
        def processes(side)
          @processes ||= {}
          @processes[side] ||= mean? ? pairs.map { |pair| Statistics.mean(pair[side]) } : @samples.map { |pair| ProcessStatistic.of(pair[side], metric) }
        end
        def mean? = count? || MEANS.include?(metric)

        def side(number)
          return if pairs.empty? || invalid?

          !exact? && (count? || rare?) ? Statistics.mean(processes(number)) : Statistics.median(processes(number))
        end

        def invalid(headline)
          wrong = all.reject { |value| Measure.valid?(value) }
          @invalid = if !wrong.empty?
                       "#{metric}: #{wrong.first.inspect} was measured"
                     elsif headline && !count? && all.any?(&:zero?)
                       "#{metric}: 0 was measured; more iterations a batch are needed"
                     end
        end

        # One value a process may be the same twice by chance.
        def repeats?(processes)
          processes.flatten.uniq.size == 1 && (processes.all? { |values| values.size > 1 } || processes.size >= Sequential::MIN_PAIRS)
        end

        def logarithms
          before, after = processes(0), processes(1)
          return rare_logarithm(before, after) if rare?

          Statistics.yuen(mean? ? before.zip(after).map { |a, b| Math.log(b) - Math.log(a) } : @samples.map { |a, b| ProcessStatistic.ratio(a, b, metric) })
        end

        # Single processes saw none.
        def rare? = (processes(0) + processes(1)).any?(&:zero?)

        # ln of the ratio of means, with its standard error to first order. Untrimmed: the trimmed mean of what happens in one process
        # in twenty is 0. Where a whole side saw none only the direction is known: ±1.
        def rare_logarithm(before, after)
          a, b = Statistics.mean(before), Statistics.mean(after)
          parts = Statistics.yuen(before.zip(after).map { |x, y| (b.zero? ? 0.0 : y / b) - (a.zero? ? 0.0 : x / a) }, trim: 0)
          parts.point = Math.log(b / a) if ratio?
          parts
        end
      end
      private_constant :Measure

      # What is said of a measure at a look.
      class Judgement
        def initialize(measure, alpha:, margin:, look:)
          @measure = measure
          @noise = measure.noise
          @alpha = alpha
          @margin = margin
          @look = look
        end

        #: (Hash[Symbol, String]) -> Effect
        def effect(names)
          Effect.new(**names, metric: @measure.metric, unit: @measure.unit, a: @measure.a, b: @measure.b, ratio: ratio, verdict: verdict,
                              exact: @measure.exact?, pairs: pairs, smallest_detectable: smallest_detectable, margin: @margin,
                              below_margin: below_margin?, reason: reason)
        end

        private

        def pairs = @measure.pairs.size
        def enough? = pairs >= Sequential::MIN_PAIRS
        def error = @noise&.standard_error

        def reason
          @reason ||= @measure.refusal ||
                      ("nothing was measured on both sides" if pairs.zero?) ||
                      ("#{pairs} #{pairs == 1 ? 'pair' : 'pairs'}: #{Sequential::MIN_PAIRS} are needed" unless enough? || @measure.exact?)
        end

        def verdict = @verdict ||= find_verdict

        def find_verdict
          return :undecided if reason
          return direction(@measure.b <=> @measure.a) if @measure.exact?
          return direction(@noise.point <=> 0) if real?

          within_margin? ? :same : :undecided
        end

        def direction(sign)
          return :same if sign.zero?

          @measure.time? ? { 1 => :slower, -1 => :faster }[sign] : { 1 => :more, -1 => :fewer }[sign]
        end

        def real? = @measure.beyond?(@alpha, @look)

        def within_margin?
          @measure.ratio? && @noise.point.abs + @look.boundary(SAME, @noise.degrees) * error < Math.log(1 + @margin)
        end

        def below_margin?
          return false if %i[same undecided].include?(verdict)
          return @measure.ratio? && Math.log(@measure.b / @measure.a).abs < Math.log(1 + @margin) if @measure.exact?

          within_margin?
        end

        def ratio
          return exact_ratio if @measure.exact?
          return Estimate.new(nil, nil, nil, level, pairs) unless @noise && @measure.ratio?
          return Estimate.new(Math.exp(@noise.point), nil, nil, level, pairs) unless error

          reach = boundary * error
          Estimate.new(@noise.point, @noise.point - reach, @noise.point + reach, level, pairs).map { |logarithm| Math.exp(logarithm) }
        end

        def level = 1 - @alpha

        def boundary
          wide = @look.boundary(@alpha, @noise.degrees)
          verdict == :undecided ? wide : [wide, Sequential::ONLY.boundary(@alpha, @noise.degrees)].min
        end

        # 0 of 0 is the same; there is no number for something of nothing.
        def exact_ratio
          a, b = @measure.a, @measure.b
          value = a == b ? 1.0 : (b / a if a.positive?)
          Estimate.new(value, value, value, 1.0, pairs)
        end

        # With so many pairs, and one look.
        def smallest_detectable
          return unless error && @measure.ratio?

          found = Math.exp((Statistics.student_quantile(POWER, @noise.degrees) - Statistics.student_quantile(0.5 * @alpha, @noise.degrees)) * error) - 1
          found if found.finite?
        end
      end
      private_constant :Judgement
    end
  end
end
