# frozen_string_literal: true

module Pitwall
  module Analyse
    # What one metric of one case did from the base to a side.
    #
    # name:    the case; side: label of B; base: label of A; metric: "wall", "wall_mean", "objects"…; unit: "ns", "bytes" or "count"
    # a, b:    Floats, what A and B measured: the median over processes of each process's statistic
    #          (its median; for wall_mean, gc_time and counts that vary its mean, and then the mean over processes)
    # ratio:   Estimate of B/A. Not b / a: it is made of pairs. Its parts are nil where no ratio exists (A is 0 and B is not)
    # verdict: :faster, :slower, :same or :undecided for times; :fewer, :more, :same or :undecided for the rest
    # exact:   true where both sides repeated their count exactly; then ratio.low == ratio.high
    # pairs:   Integer, how many pairs (blocks) it rests on
    # smallest_detectable: what these pairs would have shown four times in five, as ratio − 1 (0.013); nil where exact or unknown
    # margin:  Float, how far from 1 a ratio may be and still be "the same" (0.01)
    # below_margin: true where the difference is real but smaller than the margin
    # reason:  String, why nothing could be decided or was refused; nil where more pairs might decide
    Effect = Struct.new(:name, :side, :base, :metric, :unit, :a, :b, :ratio, :verdict, :exact, :pairs, :smallest_detectable, :margin,
                        :below_margin, :reason, keyword_init: true) do
      #: () -> bool
      def decided? = verdict != :undecided

      #: () -> bool
      def worse? = verdict == :slower || verdict == :more

      #: () -> bool
      def better? = verdict == :faster || verdict == :fewer
    end
  end
end
