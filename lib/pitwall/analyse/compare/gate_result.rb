# frozen_string_literal: true

module Pitwall
  module Analyse
    # How a gate (`slower by 3%`) judged a comparison, and whether a second run confirmed it.
    #
    # condition: String, as typed
    # found:     Array of Effect for which the condition holds; empty where it holds for none
    # again:     Array of Effect of the second run, in the order of `found`, nil for one that wasn't measured again;
    #            nil where there was no second run
    # confirmed: Array of Effect of `found` for which the condition holds in the second run, too
    GateResult = Struct.new(:condition, :found, :again, :confirmed, keyword_init: true) do
      # Whether a change is too slow by a limit: it is proven slower, the limit is not ruled out (the interval reaches
      # it), and the best estimate is nearer to the limit than to no change, on the scale of logarithms.
      #
      # A change without effect fails as rarely as the comparison gives false alarms. A change of the limit's size fails
      # as often as the comparison finds it: 3% fails at "by 3%", while a limit that the whole interval has to exceed
      # would let nearly all of those pass.
      # @param limit a ratio, e.g. 1.03
      #: (Effect, Float) -> bool
      def self.slower_by?(effect, limit)
        ratio = effect.ratio
        return false unless effect.verdict == :slower && ratio&.point

        (ratio.high || ratio.point) >= limit && Math.log(ratio.point) >= 0.5 * Math.log(limit)
      end

      # Whether the gate fails.
      #: () -> bool
      def failed? = again ? confirmed.any? : found.any?
    end
  end
end
