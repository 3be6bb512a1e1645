# frozen_string_literal: true

module Pitwall
  module Analyse
    # Effect of a side (B) relative to the base (A) on one metric of one case.
    #
    # name:    the case
    # side:    label of B
    # base:    label of A
    # metric:  "wall", "wall_mean", "objects"…
    # unit:    "ns", "bytes" or "count"
    # a, b:    Floats, measured values of A and B: the median over processes of each process's median.
    #          For wall_mean, gc_time and varying counts, the mean of each process, and the mean over processes
    # ratio:   Estimate of B/A. It is computed from pairs, so it differs from b / a. Its parts are nil if there is no
    #          ratio (A is 0 and B is not)
    # verdict: :faster, :slower, :same or :undecided for times; :fewer, :more, :same or :undecided for counts
    # exact:   true if each side repeated its count exactly; then ratio.low == ratio.high
    # pairs:   Integer, number of pairs (blocks)
    # smallest_detectable: effect that so many pairs show with a probability of 80%, as ratio − 1 (0.013); nil if the
    #          effect is exact or if this is unknown
    # margin:  Float, distance of a ratio from 1 that counts as "the same" (0.01)
    # below_margin: true if the difference is real but smaller than the margin
    # reason:  String, why there is no verdict; nil if more pairs might give one
    Effect = Struct.new(:name, :side, :base, :metric, :unit, :a, :b, :ratio, :verdict, :exact, :pairs,
                        :smallest_detectable, :margin, :below_margin, :reason, keyword_init: true) do
      # Whether there is a verdict.
      #: () -> bool
      def decided? = verdict != :undecided

      # Whether the side is worse than the base.
      #: () -> bool
      def worse? = verdict == :slower || verdict == :more

      # Whether the side is better than the base.
      #: () -> bool
      def better? = verdict == :faster || verdict == :fewer
    end
  end
end
