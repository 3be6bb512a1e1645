# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Sequential testing: looks at data while they come in, without more false alarms than a single look at the end.
    # Each look has its own boundary. It is far out at first, and close to the usual one at the end.
    #
    # The boundaries are those of Lan and DeMets (1983) with a spending function like O'Brien and Fleming's. At the
    # information fraction t (pairs so far / pairs planned), a side may have used 2 (1 − Φ(z / √t)) of its alpha.
    # The boundaries are exact for any number of looks at any fractions, by the recursive integration of Armitage,
    # McPherson and Rowe (1969). Sums of normal values are a Brownian motion. Its density, where no boundary was passed,
    # is computed from look to look.
    module Sequential
      # Number of looks, evenly spread over the planned pairs.
      LOOKS = 6
      # Fewest pairs for a look, and for a verdict on times. A trimmed mean of fewer pairs is too inaccurate.
      MIN_PAIRS = 8
      # Most cached results of each function.
      CACHED = 1000
      private_constant :CACHED

      class << self
        # Boundary z of each look, two-sided.
        # @param fractions [Array<Float>] information fraction of each look; ascending, above 0
        # @param ended [bool] whether the last look ends the measurement, even early; it then spends the remaining alpha
        #: (Array[Float], alpha: Float, ?ended: bool) -> Array[Float]
        def boundaries(fractions, alpha:, ended: false)
          cached(:@boundaries, [fractions, alpha, ended]) { compute(fractions, 0.5 * alpha, ended).freeze }
        end

        # Quantile of Student's t with the same tail probability as z has in the normal distribution.
        #: (Float, Integer) -> Float
        def student(z, degrees)
          cached(:@students, [z, degrees]) { -Statistics.student_quantile(Statistics.normal_cdf(-z), degrees) }
        end

        private

        def cached(name, key)
          store = instance_variable_get(name) || instance_variable_set(name, {})
          store.clear if store.size > CACHED
          store[key] ||= yield
        end

        def compute(fractions, side, ended)
          motion = Motion.new(fractions)
          spent = 0.0
          fractions.map.with_index do |fraction, look|
            allowed = ended && look == fractions.size - 1 ? side : spending([fraction, 1.0].min, side)
            motion.advance
            boundary = motion.boundary(allowed - spent)
            motion.stop_outside(boundary)
            spent = allowed
            boundary / Math.sqrt(fraction)
          end
        end

        def spending(fraction, side)
          2 * Statistics.normal_cdf(Statistics.normal_quantile(0.5 * side) / Math.sqrt(fraction))
        end
      end

      # One look at the data.
      # fractions: Array of Floats, information fractions of all looks so far, with this one.
      # last:      whether it is the last look.
      Look = Struct.new(:fractions, :last) do
        # Number of standard errors by which an effect must differ from 0, with so many degrees of freedom.
        #: (Float, Integer) -> Float
        def boundary(alpha, degrees)
          Sequential.student(Sequential.boundaries(fractions, alpha: alpha, ended: last).last, degrees)
        end

        # Whether the measurement ends here.
        #: () -> bool
        def last? = last
      end

      # The look of a measurement with no earlier looks.
      ONLY = Look.new([1.0].freeze, true).freeze

      # The numbers of pairs at which to look, up to `max_pairs`.
      class Plan
        # Largest number of pairs, and the numbers of pairs at which to look.
        attr_reader :max_pairs, :looks

        # @raise [ArgumentError] without pairs
        #: (Integer) -> void
        def initialize(max_pairs)
          raise ArgumentError, "at least one pair must be planned" unless max_pairs.positive?

          @max_pairs = max_pairs
          pairs = (1..LOOKS).map { |number| [(max_pairs * number).fdiv(LOOKS).round, MIN_PAIRS].max }
          @looks = pairs.map { |count| count.clamp(1, max_pairs) }.uniq.freeze
        end

        # The look that is due after so many pairs; nil between looks.
        #: (Integer) -> Look?
        def look(pairs)
          return last_look(pairs) if pairs >= max_pairs

          Look.new(fractions(looks.take_while { |look| look <= pairs }), false) if looks.include?(pairs)
        end

        # The look after which the measurement ends, planned or not (the time is up). It spends the remaining alpha.
        #: (Integer) -> Look
        def last_look(pairs) = Look.new(fractions(looks.take_while { |look| look < pairs } + [pairs]), true)

        # The boundary z at each planned look.
        #: (Float) -> Hash[Integer, Float]
        def boundaries(alpha) = looks.zip(Sequential.boundaries(fractions(looks), alpha: alpha, ended: true)).to_h

        private

        def fractions(pairs) = pairs.map { |count| count.fdiv(max_pairs) }
      end

      # Result of a look. effects: of all cases. pairs: number so far. look: the Look. stop: whether to stop measuring.
      # open: names of the undecided cases; only these need more pairs.
      Decision = Struct.new(:effects, :pairs, :look, :stop, :open) do
        alias_method :stop?, :stop
      end

      # The whole procedure. It gets one block of samples after the other: live, from a recording or from a simulation.
      # Once the headline metric of a case is decided for a side, the effects of this case and side stay as they are.
      # Later blocks are measured for other cases only.
      #
      #   procedure = Sequential::Procedure.new(comparison: Comparison.new, plan: Sequential::Plan.new(60),
      #                                         base: "A", sides: ["B"])
      #   until (decision = procedure.add(measure_a_block)) && decision.stop?
      #     decision = procedure.finish and break if time_is_up
      #   end
      class Procedure
        # Number of blocks so far, all their samples, and the Plan.
        attr_reader :pairs, :samples, :plan

        #: (comparison: Comparison, plan: Plan, base: String, sides: Array[String]) -> void
        def initialize(comparison:, plan:, base:, sides:)
          @comparison = comparison
          @plan = plan
          @base = base
          @sides = sides
          @pairs = 0
          @samples = []
          @settled = {} # [case, side] → its effects
        end

        # Adds a block.
        # @param block [Array<Record::Sample>] one sample of each side, of each undecided case
        # @return [Decision, nil] nil between looks
        #: (Array[Record::Sample]) -> Decision?
        def add(block)
          @samples.concat(block)
          @pairs += 1
          look = plan.look(pairs)
          look && decide(look)
        end

        # The decision at the end, wherever it comes. Without a block, everything is undecided.
        #: () -> Decision
        def finish = decide(pairs.zero? ? ONLY : plan.last_look(pairs))

        private

        def decide(look)
          effects = @comparison.effects(@samples, base: @base, sides: @sides, look: look)
          groups = effects.group_by { |effect| [effect.name, effect.side] }
          groups.each { |key, group| @settled[key] ||= group if @comparison.decided?(group) }
          open = groups.keys.reject { |key| @settled.key?(key) }.map(&:first).uniq
          current = groups.flat_map { |key, group| @settled[key] || group }
          Decision.new(current, pairs, look, look.last? || open.empty?, open)
        end
      end

      # A Brownian motion on the paths that no boundary has stopped. Holds the density at the last look at the nodes of
      # a Gauss-Legendre quadrature.
      class Motion
        # Probabilities beyond this many standard deviations (1e-23) are neglected.
        FAR = 10.0

        def initialize(times)
          @times = times
          @steps = [0.0, *times].each_cons(2).map { |before, after| after - before }
          raise ArgumentError, "looks must rise from above 0: #{times.join(' ')}" unless @steps.all?(&:positive?)

          @look = -1
          @points = [0.0]
          @masses = [1.0]
        end

        # Goes to the next look. The density is still that of the previous look.
        def advance
          @look += 1
          @time = @times[@look]
          @step = Math.sqrt(@steps[@look])
        end

        # The level above which this probability remains. Newton's method on the logarithm of the tail, which is nearly
        # a parabola.
        def boundary(chance)
          low, high = 0.0, 40 * Math.sqrt(@time)
          return high unless chance > 1e-300

          level = -Statistics.normal_quantile(chance) * Math.sqrt(@time)
          60.times do
            probability = above(level)
            error = probability.positive? ? Math.log(probability / chance) : -1.0
            error.positive? ? low = level : high = level
            following = probability.positive? ? level + error * probability / density(level) : 0.0
            return following if (following - level).abs < 1e-6 # the error of a step is the previous one squared

            level = following > low && following < high ? following : 0.5 * (low + high)
          end
          level
        end

        # Keeps the paths between −level and level for the next look.
        def stop_outside(level)
          return if @look == @times.size - 1

          level = [level, FAR * Math.sqrt(@time)].min
          nodes, weights = Quadrature.rule(points_for(2 * level))
          points = nodes.map { |node| level * node }
          @masses = points.map.with_index { |point, index| level * weights[index] * density(point) }
          @points = points
        end

        private

        # Probability above a level at this look.
        def above(level)
          scale = 1 / (@step * Math.sqrt(2))
          sum = 0.0
          @points.each_with_index { |point, index| sum += @masses[index] * Math.erfc((level - point) * scale) }
          0.5 * sum
        end

        # Density at a level at this look.
        def density(level)
          scale = -0.5 / (@step * @step)
          sum = 0.0
          @points.each_with_index do |point, index|
            sum += @masses[index] * Math.exp(scale * (level - point) * (level - point))
          end
          sum / (@step * Math.sqrt(2 * Math::PI))
        end

        # Number of nodes. Enough for the density of this step and of the next to be smooth from node to node.
        def points_for(width) = (2.5 * width / Math.sqrt(@steps[@look, 2].min)).ceil.clamp(16, 300)
      end
      private_constant :Motion

      # Nodes of Gauss-Legendre quadrature on −1..1 and their weights, by Newton's method on the Legendre polynomial.
      module Quadrature
        def self.rule(size) = (@rules ||= {})[size] ||= compute(size)

        def self.compute(size)
          size.times.map do |index|
            node = Math.cos(Math::PI * (index + 0.75) / (size + 0.5))
            slope = nil
            20.times do
              value, slope = legendre(size, node)
              node -= value / slope
              break if (value / slope).abs < 1e-15
            end
            [node, 2 / ((1 - node * node) * slope * slope)]
          end.transpose
        end

        # Value and slope of the Legendre polynomial.
        def self.legendre(size, at)
          before, value = 1.0, at
          (2..size).each do |order|
            before, value = value, ((2 * order - 1) * at * value - (order - 1) * before) / order
          end
          [value, size * (at * value - before) / (at * at - 1)]
        end
      end
      private_constant :Quadrature
    end
  end
end
