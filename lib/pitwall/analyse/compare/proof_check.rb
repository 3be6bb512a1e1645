# frozen_string_literal: true

module Pitwall
  module Analyse
    # Holds a proof's claims against a new measurement of the same two trees.
    #
    # verdict of a claim:
    #   :holds      the new verdict is the claimed one
    #   :smaller    the new verdict is the claimed one, but at most half of the claimed change is left: the whole
    #               interval lies nearer to 1 than half of the claimed change (of its logarithm)
    #   :fails      another verdict
    #   :undecided  no verdict this time
    #   :missing    the case or the metric wasn't measured this time
    class ProofCheck
      # What is left of a claimed change must be able to be more than this part of it.
      LEAST = 0.5
      private_constant :LEAST

      # claim: Record::Claim · effect: Effect, nil where it is missing · verdict: Symbol, see above
      Outcome = Struct.new(:claim, :effect, :verdict)

      # @return [Array<Outcome>] of each decided claim
      attr_reader :outcomes

      # @param effects of one side against the base
      #: (Array[Record::Claim], Array[Effect]) -> void
      def initialize(claims, effects)
        @outcomes = claims.select(&:decided?).map do |claim|
          effect = effects.find { |each| each.name == claim.name && each.metric == claim.metric }
          Outcome.new(claim, effect, judge(claim, effect))
        end
      end

      # The verdict of the whole proof: :fails when any claim fails, is smaller or missing; else :undecided when any
      # claim is; else :holds.
      #: () -> Symbol
      def verdict
        found = outcomes.map(&:verdict)
        return :fails if (found & %i[fails smaller missing]).any?

        found.empty? || found.include?(:undecided) ? :undecided : :holds
      end

      private

      def judge(claim, effect)
        return :missing unless effect
        return :undecided if effect.verdict == :undecided
        return effect.verdict == :same || effect.below_margin ? :holds : :fails if claim.verdict == :same || claim.small
        return :fails unless effect.verdict == claim.verdict

        smaller?(claim, effect.ratio) ? :smaller : :holds
      end

      # Whether the interval's end that is farther from 1 is nearer than half of the claimed change.
      def smaller?(claim, ratio)
        return false unless claim.point && ratio&.low
        return ratio.low.positive? if claim.point.zero?

        farthest = claim.point < 1 ? ratio.low : ratio.high
        return false if farthest.nil? || farthest.zero?

        Math.log(farthest) / Math.log(claim.point) < LEAST
      end
    end
  end
end
