# frozen_string_literal: true

require_relative "traces"

module Benchmarks
  # Makes any number of comparisons out of a trace. The procedure is the live one, fed with pairs that were really
  # measured.
  #
  # Blocks of neighbouring pairs are drawn (moving-block bootstrap: Künsch 1989), so that bad minutes stay together.
  # Within each pair a random draw says which process was A's and which was B's. Both ran the same, so chance made their
  # difference when they were measured. So the true difference is known: none, until B's times are multiplied.
  class Resampling
    BLOCK = 12 # pairs
    private_constant :BLOCK

    # What became of one comparison.
    Outcome = Struct.new(:effect, :truth, keyword_init: true) do
      def verdict = effect.verdict
      def found? = verdict == (truth > 1 ? :slower : :faster)
      def covered? = effect.ratio.low ? (effect.ratio.low..effect.ratio.high).cover?(truth) : true
    end

    #: (Trace, seconds: Float, ?planted: Float, ?alpha: Float, ?margin: Float, ?seed: Integer, ?whole: bool) -> void
    # @param seconds the budget: how many pairs it holds is the trace's to say
    # @param whole false: a process is its median alone, which is three times as fast. The verdict on wall time needs no
    #   more, except for the check for a steady state.
    def initialize(trace, seconds:, planted: 0.0, alpha: 0.01, margin: 0.01, seed: 1, whole: true)
      @trace = trace
      @whole = whole
      @truth = 1 + planted
      @comparison = Pitwall::Analyse::Comparison.new(alpha: alpha, margin: margin)
      @plan = Pitwall::Analyse::Sequential::Plan.new([trace.pairs_in(seconds), 1].max)
      @random = Random.new(seed)
    end

    #: (Integer) -> Array[Outcome]
    def outcomes(count) = Array.new(count) { Outcome.new(effect: compare, truth: @truth) }

    private

    def compare
      procedure = Pitwall::Analyse::Sequential::Procedure.new(comparison: @comparison, plan: @plan,
                                                              base: "A", sides: ["B"])
      decision = nil
      block = -1
      until decision&.stop?
        start = @random.rand(@trace.pairs.size)
        BLOCK.times do |step|
          decision = procedure.add(pair(@trace.pairs[(start + step) % @trace.pairs.size], block += 1))
          break if decision&.stop?
        end
      end
      decision.effects.find { |effect| effect.metric == "wall" }
    end

    def pair(processes, block)
      base = @random.rand(2)
      processes.each_with_index.map do |process, order|
        side, factor = order == base ? ["A", 1.0] : ["B", @truth]
        @trace.sample(process, side, block, order, factor, whole: @whole)
      end
    end
  end
end
