# frozen_string_literal: true

require "pitwall/analyse/statistics/effect"
require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/sequential"
require "pitwall/analyse/statistics/statistics"
require "pitwall/record/sample"

module Pitwall
  module Analyse
    # Computes effects from samples: how each metric of each case changed from one side to another, with an interval.
    #
    # Samples of one block make a pair. A process counts once, however many batches it ran. Each pair gives d = ln(B/A)
    # ({ProcessStatistic.ratio}, or the ratio of means). The effect is the trimmed mean of d with Yuen's interval.
    # alpha is the probability of a false alarm for the headline metric of one case. Several sides share it equally
    # (Bonferroni). All other varying metrics together have the same alpha (Holm). Exactly repeating counts need none.
    #
    # Verdict and interval agree:
    # - slower/faster (more/fewer): the effect passes the look's boundary. The interval is that of a single look, so it
    #   does not contain 1. It contains the true value as often as its level says. The boundary's own interval would be
    #   about twice as wide and contain it in 99–100% of cases at 95%, because the procedure stops as soon as it can.
    # - same: the 90% interval, with boundaries of its own for the looks, lies inside the margin.
    #   So at most one in twenty effects as large as the margin is called the same.
    #   The interval is that of a single look and may not contain 1.
    # - undecided: neither. The interval is the boundary's own and contains 1.
    # An effect that is real and inside the margin is slower/faster with `below_margin`.
    class Comparison
      # Probability of detecting an effect of `smallest_detectable`.
      POWER = 0.8
      # 1 − level of the interval that must lie inside the margin: two one-sided tests at 5%.
      SAME = 0.1
      # Largest share of processes that report themselves as unsteady.
      UNSTEADY = 1 / 3r
      # A metric computed from "wall". It contains what the median hides: rare slow iterations and garbage collection.
      MEAN = "wall_mean"

      # The parameters.
      attr_reader :alpha, :margin, :headline

      # @param alpha [Float] probability of a false alarm, see above
      # @param margin [Float] distance of a ratio from 1 that counts as the same: 0.01
      # @param headline [String] name of the metric that decides a case
      # @raise [ArgumentError] if alpha or margin is out of range
      #: (?alpha: Float, ?margin: Float, ?headline: String) -> void
      def initialize(alpha: 0.01, margin: 0.01, headline: "wall")
        raise ArgumentError, "alpha must lie between 0 and 1" unless alpha.positive? && alpha < 1
        raise ArgumentError, "the margin must be above 0" unless margin.positive?

        @alpha = alpha
        @margin = margin
        @headline = headline
      end

      # All effects. Cases are in the order of their first samples, sides as given, the headline metric first.
      # @param look [Sequential::Look] the look at growing data; by default the only one
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
        pairs = of_side.uniq(&:block).filter_map do |sample|
          [firsts[sample.block], sample] if firsts[sample.block]
        end
        pairs.sort_by { |a, _| a.block }
      end

      def judge(pairs, names, alpha, look)
        unsteady = Steadiness.new(pairs, alpha).refusal
        measures = metrics(pairs).map do |metric|
          Measure.new(metric, pairs, unsteady: unsteady, headline: [headline, MEAN].include?(metric))
        end
        varying = measures.select { |measure| measure.metric != headline && measure.noise && !measure.refusal }
        shares = Statistics.holm(varying.map(&:p_value), alpha: alpha) do |index, share|
          varying[index].beyond?(share, look)
        end
        measures.map do |measure|
          share = varying.include?(measure) ? shares[varying.index(measure)] : alpha
          Judgement.new(measure, alpha: share, margin: margin, look: look).effect(names)
        end
      end

      # Metrics that both sides have, and the headline metric in any case.
      def metrics(pairs)
        known = [headline, "wall", MEAN, *Record::METRICS.keys]
        sides = [0, 1].map do |side|
          pairs.flat_map { |pair| pair[side].values.reject { |_, values| values.empty? }.keys }.uniq
        end
        found = sides.inject(:&)
        several = ->(sample) { sample["wall"].to_a.size > 1 }
        found << MEAN if found.include?("wall") && pairs.any? { |a, b| several.(a) && several.(b) }
        [headline] | found.sort_by { |metric| known.index(metric) || known.size }
      end

      # Whether the processes were in a steady state while they were timed.
      class Steadiness
        def initialize(pairs, alpha)
          @pairs = pairs
          @alpha = alpha
        end

        # The reason why times cannot be compared; nil if they can.
        #: () -> String?
        def refusal
          return if @pairs.size < Sequential::MIN_PAIRS

          noted || drifting(0) || drifting(1)
        end

        private

        def noted
          samples = @pairs.flatten(1)
          unsteady = samples.count { |sample| sample.notes.to_a.include?(:unsteady) }
          return unless unsteady > UNSTEADY * samples.size

          "no steady state: #{unsteady} of #{samples.size} processes were not warm in time"
        end

        def drifting(side)
          samples = @pairs.map { |pair| pair[side] }
          change = ProcessStatistic.drift(samples, level: 1 - @alpha, fewest: Sequential::MIN_PAIRS)
          return unless change

          format("no steady state: %s changed by %+.1f%% over the timed iterations", samples.first.side, 100 * change)
        end
      end
      private_constant :Steadiness

      # One metric of all pairs: whether it can be compared, and the effect as a logarithm.
      class Measure
        # Metrics of rare events. Their process's number is a mean, because its median would be 0 or a constant.
        MEANS = [MEAN, "gc_time"].freeze

        # Values must be smaller, so that squares and sums stay finite.
        LARGEST = 1e100

        # Whether a value is a valid measurement.
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

        # Whether each side repeats one value of its own: in every batch, or in enough processes.
        def exact?
          return @exact if defined?(@exact)

          repeated = (count? || all.all?(&:zero?)) && [0, 1].all? { |side| repeats?(pairs.map { |pair| pair[side] }) }
          @exact = !refusal && pairs.any? && repeated
        end

        # Statistics::Parts of ln(B/A) over pairs; nil if there is nothing to compare.
        def noise
          return @noise if defined?(@noise)

          @noise = (logarithms if pairs.any? && !exact? && !invalid?)
        end

        # Whether the effect has a ratio. It has none if all of a side is 0.
        def ratio? = a.positive? && b.positive?

        # Measured value of each side; nil if it is not a number.
        def a = @a ||= side(0)
        def b = @b ||= side(1)

        # Two-sided p-value of a single look.
        def p_value
          return 1.0 unless noise.standard_error
          return noise.point.zero? ? 1.0 : 0.0 if noise.standard_error.zero?

          2 * Statistics.student_cdf(-(noise.point / noise.standard_error).abs, noise.degrees)
        end

        # Whether the effect passes the boundary of a look.
        def beyond?(alpha, look)
          return false if noise.standard_error.nil? || pairs.size < Sequential::MIN_PAIRS

          noise.point.abs > look.boundary(alpha, noise.degrees) * noise.standard_error
        end

        private

        def known = @known ||= Record::METRICS[metric == MEAN ? "wall" : metric]
        def count? = known.nil? || known.kind == :count
        def all = @all ||= pairs.flatten
        def invalid? = !@invalid.nil?
        # The number of each process.
        def processes(side)
          @processes ||= {}
          @processes[side] ||= if mean? then pairs.map { |pair| Statistics.mean(pair[side]) }
                               else @samples.map { |pair| ProcessStatistic.of(pair[side], metric) }
                               end
        end
        def mean? = count? || MEANS.include?(metric)

        # The measured value of a side.
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

        # Whether a side always has the same value. A single value in each of a few processes may be equal by chance.
        def repeats?(processes)
          return false unless processes.flatten.uniq.size == 1

          processes.all? { |values| values.size > 1 } || processes.size >= Sequential::MIN_PAIRS
        end

        def logarithms
          before, after = processes(0), processes(1)
          return rare_logarithm(before, after) if rare?

          ratios = if mean? then before.zip(after).map { |a, b| Math.log(b) - Math.log(a) }
                   else @samples.map { |a, b| ProcessStatistic.ratio(a, b, metric) }
                   end
          Statistics.yuen(ratios)
        end

        # Whether some processes have the value 0, so their ratio has no logarithm.
        def rare? = (processes(0) + processes(1)).any?(&:zero?)

        # Logarithm of the ratio of means, with its standard error to first order.
        # The mean is not trimmed: for events in one process of twenty, a trimmed mean would be 0.
        # If a whole side is 0, only the direction is known, and the point is ±1.
        def rare_logarithm(before, after)
          a, b = Statistics.mean(before), Statistics.mean(after)
          changes = before.zip(after).map { |x, y| (b.zero? ? 0.0 : y / b) - (a.zero? ? 0.0 : x / a) }
          parts = Statistics.yuen(changes, trim: 0)
          parts.point = Math.log(b / a) if ratio?
          parts
        end
      end
      private_constant :Measure

      # The effect of a measure at a look.
      class Judgement
        def initialize(measure, alpha:, margin:, look:)
          @measure = measure
          @noise = measure.noise
          @alpha = alpha
          @margin = margin
          @look = look
        end

        # The effect.
        # @param names [Hash] the effect's name, base and side
        #: (Hash[Symbol, String]) -> Effect
        def effect(names)
          Effect.new(**names, metric: @measure.metric, unit: @measure.unit, a: @measure.a, b: @measure.b, ratio: ratio,
                              verdict: verdict, exact: @measure.exact?, pairs: pairs,
                              smallest_detectable: smallest_detectable, margin: @margin,
                              below_margin: below_margin?, reason: reason)
        end

        private

        def pairs = @measure.pairs.size
        def enough? = pairs >= Sequential::MIN_PAIRS
        def error = @noise&.standard_error

        def reason
          @reason ||= @measure.refusal || ("nothing was measured on both sides" if pairs.zero?) || too_few_pairs
        end

        def too_few_pairs
          return if enough? || @measure.exact?

          "#{pairs} #{pairs == 1 ? "pair" : "pairs"}: #{Sequential::MIN_PAIRS} are needed"
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
          logarithm = Estimate.new(@noise.point, @noise.point - reach, @noise.point + reach, level, pairs)
          logarithm.map { |value| Math.exp(value) }
        end

        def level = 1 - @alpha

        def boundary
          wide = @look.boundary(@alpha, @noise.degrees)
          verdict == :undecided ? wide : [wide, Sequential::ONLY.boundary(@alpha, @noise.degrees)].min
        end

        # Ratio of exact counts. 0 and 0 are the same; there is no ratio of something to 0.
        def exact_ratio
          a, b = @measure.a, @measure.b
          value = a == b ? 1.0 : (b / a if a.positive?)
          Estimate.new(value, value, value, 1.0, pairs)
        end

        # Effect that so many pairs detect in a single look with probability POWER, as ratio − 1.
        def smallest_detectable
          return unless error && @measure.ratio?

          power = Statistics.student_quantile(POWER, @noise.degrees)
          reach = power - Statistics.student_quantile(0.5 * @alpha, @noise.degrees)
          smallest = Math.exp(reach * error) - 1
          smallest if smallest.finite?
        end
      end
      private_constant :Judgement
    end
  end
end
