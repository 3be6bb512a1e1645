# frozen_string_literal: true

require "pitwall/analyse/compare/comparison"
require "pitwall/analyse/statistics/sequential"

# Plays the whole sequential procedure, the one that live comparisons run, on made or recorded pairs.
module Oracle
  module Trial
    # How many trials of a simulation ended how. verdicts: {verdict => share}; covered: the share whose printed interval holds the truth.
    Tally = Struct.new(:trials, :verdicts, :covered, :pairs) do
      def share(*names) = names.sum { |name| verdicts.fetch(name, 0.0) }
    end

    module_function

    # The effect on wall time when it stopped. The block gives the process medians of the next pair: [a, b].
    def play(comparison, plan)
      procedure = Pitwall::Analyse::Sequential::Procedure.new(comparison: comparison, plan: plan, base: "A", sides: ["B"])
      loop do
        decision = procedure.add(samples(procedure.pairs, *yield))
        return decision.effects.first if decision&.stop?
      end
    end

    # truth: the true ratio B/A. The block gives a source of pairs (something to call) for each trial.
    def tally(trials, comparison: Pitwall::Analyse::Comparison.new, max_pairs: 60, truth: 1.0)
      plan = Pitwall::Analyse::Sequential::Plan.new(max_pairs)
      ends = Array.new(trials) do |number|
        source = yield number
        play(comparison, plan) { source.call }
      end
      Tally.new(trials, ends.map(&:verdict).tally.transform_values { |count| count.fdiv(trials) },
                ends.count { |effect| truth.between?(effect.ratio.low, effect.ratio.high) }.fdiv(trials), ends.sum(&:pairs).fdiv(trials))
    end

    def samples(block, a, b) = [sample("A", block, a), sample("B", block, b)]

    def sample(side, block, value)
      Pitwall::Record::Sample.new(side: side, name: "x", block: block, order: 0, values: { "wall" => [value] }, iterations: 1, warmup: 0, notes: [])
    end

    # Noises: each takes a Random and returns a source of pairs whose B takes `effect` times as long.
    module Noise
      module_function

      def normal(random) = Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)

      # Process medians around 1 ms whose logarithms are independent.
      def independent(random, effect)
        -> { [1e6 * Math.exp(yield(random)), 1e6 * effect * Math.exp(yield(random))] }
      end

      def gaussian(random, effect, deviation = 0.01) = independent(random, effect) { |chance| deviation * normal(chance) }

      # Student's t with 3 degrees of freedom: one in a hundred is ten deviations off.
      def heavy(random, effect, deviation = 0.008)
        independent(random, effect) { |chance| deviation * normal(chance) / Math.sqrt(Array.new(3) { normal(chance)**2 }.sum / 3) }
      end

      # Never faster than the machine can, now and then much slower.
      def skewed(random, effect, deviation = 0.01) = independent(random, effect) { |chance| -deviation * Math.log(1 - chance.rand) }

      # One process in eight meets another program and takes a tenth longer.
      def loaded(random, effect)
        independent(random, effect) { |chance| 0.008 * normal(chance) + (chance.rand < 0.125 ? 0.1 * chance.rand : 0) }
      end

      # The machine gets slower for good while it is measured: half a percent with every process.
      def drifting(random, effect) = ordered(random, effect) { |before| before + 0.005 + 0.0001 * normal(random) }

      # What one process suffered the next one still feels.
      def autocorrelated(random, effect) = ordered(random, effect) { |before| 0.8 * before + 0.006 * normal(random) }

      # One process after the other, the two of a pair in random order. The block gives the machine's state from the one before.
      def ordered(random, effect)
        state = 0.0
        lambda do
          first, second = Array.new(2) { 1e6 * Math.exp((state = yield(state)) + 0.006 * normal(random)) }
          random.rand < 0.5 ? [first, second * effect] : [second, first * effect]
        end
      end
    end
  end
end
