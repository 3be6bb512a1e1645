# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Looking at the data while they come in without being wrong more often than one look at the end would be: each look
    # has a boundary of its own, far out at first and near the usual one at the end.
    #
    # Boundaries are those of Lan and DeMets (1983) with spending of O'Brien and Fleming's kind: by the information fraction t
    # (pairs so far over pairs planned) 2 (1 − Φ(z / √t)) of a side's chance of a false alarm may have been used up. They are exact for
    # any number of looks at any fractions, by the recursive integration of Armitage, McPherson and Rowe (1969): sums of
    # normal values are a Brownian motion, whose density where no boundary has been met is carried from look to look.
    module Sequential
      # At how many points, evenly spread over the planned pairs, the data are looked at.
      LOOKS = 6
      # No look before, and no verdict on a clock: a trimmed mean of fewer pairs says too little.
      MIN_PAIRS = 8
      # Results of pure functions kept, each.
      CACHED = 1000
      private_constant :CACHED

      class << self
        # The boundary z of each look, two-sided.
        # @param fractions [Array<Float>] rising, above 0; the information at each look
        # @param ended [bool] the last look is the end, even where it comes early: it spends all that is left
        #: (Array[Float], alpha: Float, ?ended: bool) -> Array[Float]
        def boundaries(fractions, alpha:, ended: false)
          cached(:@boundaries, [fractions, alpha, ended]) { compute(fractions, 0.5 * alpha, ended).freeze }
        end

        # The quantile of Student's t that is as far out as z is for the normal distribution.
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

        def spending(fraction, side) = 2 * Statistics.normal_cdf(Statistics.normal_quantile(0.5 * side) / Math.sqrt(fraction))
      end

      # One look at the data: what was looked at before, and whether it is the last.
      # fractions: Array of Floats, the information at each look so far, this one included
      Look = Struct.new(:fractions, :last) do
        # How many standard errors an effect must be away from nothing to count, with so many degrees of freedom.
        #: (Float, Integer) -> Float
        def boundary(alpha, degrees) = Sequential.student(Sequential.boundaries(fractions, alpha: alpha, ended: last).last, degrees)

        #: () -> bool
        def last? = last
      end

      # The only look there is: everything was measured before anyone looked.
      ONLY = Look.new([1.0].freeze, true).freeze

      # Which numbers of pairs are looked at on the way to `max_pairs`.
      class Plan
        # The most pairs there will be, and after how many of them the data are looked at.
        attr_reader :max_pairs, :looks

        # looks: pair counts, the last is max_pairs.
        #: (Integer) -> void
        def initialize(max_pairs)
          raise ArgumentError, "at least one pair must be planned" unless max_pairs.positive?

          @max_pairs = max_pairs
          @looks = (1..LOOKS).map { |number| [(max_pairs * number).fdiv(LOOKS).round, MIN_PAIRS].max.clamp(1, max_pairs) }.uniq.freeze
        end

        # The look due after so many pairs; nil between looks.
        #: (Integer) -> Look?
        def look(pairs)
          return last_look(pairs) if pairs >= max_pairs

          Look.new(fractions(looks.take_while { |look| look <= pairs }), false) if looks.include?(pairs)
        end

        # The look when it must end here, as planned or not (the time is up): all that is left of alpha is spent on it.
        #: (Integer) -> Look
        def last_look(pairs) = Look.new(fractions(looks.take_while { |look| look < pairs } + [pairs]), true)

        # The boundary z at each planned look.
        #: (Float) -> Hash[Integer, Float]
        def boundaries(alpha) = looks.zip(Sequential.boundaries(fractions(looks), alpha: alpha, ended: true)).to_h

        private

        def fractions(pairs) = pairs.map { |count| count.fdiv(max_pairs) }
      end

      # What a look found. effects: of all cases; stop: whether to measure no more; open: names of the cases that
      # aren't decided yet (only they need more pairs).
      Decision = Struct.new(:effects, :pairs, :look, :stop, :open) do
        alias_method :stop?, :stop
      end

      # The whole procedure, fed with one block of samples after the other: live, from a recording or from a simulation.
      # Once the headline of a case is decided for a side, its effects stand as they are: later blocks, measured for
      # the sake of others, don't change them.
      #
      #   procedure = Sequential::Procedure.new(comparison: Comparison.new, plan: Sequential::Plan.new(60), base: "A", sides: ["B"])
      #   until (decision = procedure.add(measure_a_block)) && decision.stop?
      #     decision = procedure.finish and break if time_is_up
      #   end
      class Procedure
        # Blocks so far, all their samples, and the Plan.
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

        # @param block [Array<Record::Sample>] one sample of each side, of each case that is still open
        #: (Array[Record::Sample]) -> Decision?
        def add(block)
          @samples.concat(block)
          @pairs += 1
          look = plan.look(pairs)
          look && decide(look)
        end

        # The end, wherever it comes. Without a block nothing can be said.
        #: () -> Decision
        def finish = decide(pairs.zero? ? ONLY : plan.last_look(pairs))

        private

        def decide(look)
          found = @comparison.effects(@samples, base: @base, sides: @sides, look: look).group_by { |effect| [effect.name, effect.side] }
          found.each { |key, effects| @settled[key] ||= effects if @comparison.decided?(effects) }
          open = found.keys.reject { |key| @settled.key?(key) }.map(&:first).uniq
          Decision.new(found.flat_map { |key, effects| @settled[key] || effects }, pairs, look, look.last? || open.empty?, open)
        end
      end

      # A Brownian motion on those of its paths that no boundary has stopped: its density at the last look, held at the points of a
      # Gauss-Legendre quadrature.
      class Motion
        # Beyond this many standard deviations nothing is left worth counting (1e-23).
        FAR = 10.0

        def initialize(times)
          @times = times
          @steps = [0.0, *times].each_cons(2).map { |before, after| after - before }
          raise ArgumentError, "looks must rise from above 0: #{times.join(' ')}" unless @steps.all?(&:positive?)

          @look = -1
          @points = [0.0]
          @masses = [1.0]
        end

        # Go on to the next look; the density is still the one of the look before.
        def advance
          @look += 1
          @time = @times[@look]
          @step = Math.sqrt(@steps[@look])
        end

        # The level that leaves a chance above it, by Newton's steps on the logarithm of the tail, nearly a parabola.
        def boundary(chance)
          low, high = 0.0, 40 * Math.sqrt(@time)
          return high unless chance > 1e-300

          level = -Statistics.normal_quantile(chance) * Math.sqrt(@time)
          60.times do
            found = above(level)
            error = found.positive? ? Math.log(found / chance) : -1.0
            error.positive? ? low = level : high = level
            following = found.positive? ? level + error * found / density(level) : 0.0
            return following if (following - level).abs < 1e-6 # a step's error is the square of the one before

            level = following > low && following < high ? following : 0.5 * (low + high)
          end
          level
        end

        # Keep the paths between ∓ a level, for the look that follows.
        def stop_outside(level)
          return if @look == @times.size - 1

          level = [level, FAR * Math.sqrt(@time)].min
          nodes, weights = Quadrature.rule(points_for(2 * level))
          points = nodes.map { |node| level * node }
          @masses = points.map.with_index { |point, index| level * weights[index] * density(point) }
          @points = points
        end

        private

        def above(level)
          scale = 1 / (@step * Math.sqrt(2))
          sum = 0.0
          @points.each_with_index { |point, index| sum += @masses[index] * Math.erfc((level - point) * scale) }
          0.5 * sum
        end

        def density(level)
          scale = -0.5 / (@step * @step)
          sum = 0.0
          @points.each_with_index { |point, index| sum += @masses[index] * Math.exp(scale * (level - point) * (level - point)) }
          sum / (@step * Math.sqrt(2 * Math::PI))
        end

        # Enough for the steps to this look and to the next to be smooth from point to point.
        def points_for(width) = (2.5 * width / Math.sqrt(@steps[@look, 2].min)).ceil.clamp(16, 300)
      end
      private_constant :Motion

      # Gauss and Legendre's nodes on −1..1 and their weights, by Newton's steps on the polynomial.
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

        # The polynomial's value and slope.
        def self.legendre(size, at)
          before, value = 1.0, at
          (2..size).each { |order| before, value = value, ((2 * order - 1) * at * value - (order - 1) * before) / order }
          [value, size * (at * value - before) / (at * at - 1)]
        end
      end
      private_constant :Quadrature
    end
  end
end
