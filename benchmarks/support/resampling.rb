# frozen_string_literal: true

require_relative "traces"

module Benchmarks
  # Comparisons out of a trace, as many as anyone wants: the procedure that runs live, fed with pairs that really were measured.
  #
  # Blocks of neighbouring pairs are drawn (moving-block bootstrap: Künsch 1989), so that bad minutes stay bad minutes, and within each
  # pair chance says anew which process was A's and which was B's. As both ran the same, that is what chance did when they were
  # measured; it makes the truth known: nothing, until B's times are multiplied.
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
    # @param whole false: a process is its median alone, which is all that the verdict on wall time needs but for the check for a steady state;
    #   three times as fast
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
      procedure = Pitwall::Analyse::Sequential::Procedure.new(comparison: @comparison, plan: @plan, base: "A", sides: ["B"])
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
        order == base ? @trace.sample(process, "A", block, order, 1.0, whole: @whole) : @trace.sample(process, "B", block, order, @truth, whole: @whole)
      end
    end
  end
end
