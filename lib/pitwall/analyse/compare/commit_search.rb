# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/sequential"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Searches the commit of a range that changed a benchmark: a binary search whose answers are noisy.
    #
    # Place 0 is the good end, the last place is the bad end. First both ends are compared. Then a place between is
    # compared with the good end, and a sequential test decides whether more than half of the whole change has happened
    # there. So half of the places are ruled out. The commit that remains is compared with the place before it.
    #
    # The error is bounded by a sum (Boole): half of alpha is for the comparison of the ends, the other half is divided
    # among the ⌈log2 n⌉ tests that a binary search of n places takes at most. Each test keeps its share however often
    # it looks ({Sequential}). Repeating a noisy question until its error is below α / log n is the simple strategy of
    # Feige, Raghavan, Peleg and Upfal ("Computing with noisy information", 1994). So with one change in the range, the
    # wrong commit is named with a probability of at most alpha. A test that its time leaves undecided ends the search:
    # several commits then remain.
    class CommitSearch
      # A test that takes one ratio after the other: where their mean lies, relative to thresholds.
      class Test
        # @return [Array<Float>] the ratios so far, as logarithms
        attr_reader :ratios
        # @return the answer; nil until there is one
        attr_reader :answer

        # @yield [Statistics::Parts, Float] the mean and the reach of its interval; returns the answer, nil without one
        #: (Integer, alpha: Float) { (Statistics::Parts, Float) -> untyped } -> void
        def initialize(max_pairs, alpha:, &judge)
          @plan = Sequential::Plan.new(max_pairs)
          @alpha = alpha
          @judge = judge
          @ratios = []
        end

        # Adds a ratio. Returns whether the test has ended.
        #: (Float) -> bool
        def add(ratio)
          @ratios << ratio
          look = @plan.look(@ratios.size)
          decide(look) if look
          !@answer.nil?
        end

        # Ends the test where it is. An answer that the data don't give is :undecided.
        #: () -> void
        def finish
          decide(@ratios.empty? ? Sequential::ONLY : @plan.last_look(@ratios.size))
          @answer ||= :undecided
        end

        # The mean with its interval by a single look, as a ratio.
        #: (Float) -> Estimate
        def estimate(level)
          return Estimate.new(nil, nil, nil, level, @ratios.size) if @ratios.empty?

          Statistics.interval(@ratios, level: level).map { |logarithm| Math.exp(logarithm) }
        end

        private

        def decide(look)
          if @ratios.size >= Sequential::MIN_PAIRS
            parts = Statistics.yuen(@ratios)
            @answer = @judge.call(parts, look.boundary(@alpha, parts.degrees) * parts.standard_error)
          end
          @answer ||= :undecided if look.last?
        end
      end
      private_constant :Test

      # A test that was done. before, after: places · kind: :ends, :half or :commit
      # answer: :changed, :unchanged or :undecided, of :ends also :same · estimate: of after / before · pairs: Integer
      Done = Struct.new(:kind, :before, :after, :answer, :estimate, :pairs, keyword_init: true)

      # @return [Array<Done>] the tests so far
      attr_reader :done
      # @return [Integer] the places between which the change is
      attr_reader :low, :high
      # @return [Float] bound of the probability of naming a wrong commit
      attr_reader :alpha

      # @param places number of places, both ends included
      # @param margin smaller changes aren't searched for, e.g. 0.01
      #: (Integer, ?alpha: Float, ?margin: Float) -> void
      def initialize(places, alpha: 0.01, margin: 0.01)
        raise ArgumentError, "two places are needed" if places < 2

        @alpha = alpha
        @margin = Math.log(1 + margin)
        @low = 0
        @high = places - 1
        @share = 0.5 * alpha / [Math.log2(@high).ceil, 1].max
        @left_out = []
        @done = []
        @kind = :ends
      end

      # The places that are compared next, the earlier one first; nil when the search has ended.
      #: () -> [Integer, Integer]?
      def task
        return @task if @task

        @task = case @kind
                when :ends then [0, @high]
                when :half then (middle = choose) ? [0, middle] : begin_commit
                when :commit then [@low, @high]
                end
      end

      # Begins the task's test. It takes so many pairs at most.
      #: (Integer) -> void
      def plan(max_pairs)
        alpha = { ends: 0.5 * @alpha, half: @share, commit: @alpha }.fetch(@kind)
        @test = Test.new(max_pairs, alpha: alpha) { |parts, reach| judge(parts, reach) }
      end

      # Adds a pair: the logarithm of its ratio. Returns whether the task has ended.
      #: (Float) -> bool
      def add(ratio) = @test.add(ratio).tap { |ended| conclude if ended }

      # Ends the task's test where it is: its time is over.
      #: () -> void
      def finish
        @test.finish
        conclude
      end

      # A place can't be measured.
      #: (Integer) -> void
      def leave_out(place)
        @left_out << place
        @task = nil
      end

      # :found (one commit, or several of which the inner ones can't be measured), :same (both ends), or :undecided
      #: () -> Symbol
      def verdict
        return :undecided if @done.empty? || @done.any? { |test| test.kind != :commit && test.answer == :undecided }
        return :same if @done.first.answer == :same

        (@low + 1...@high).all? { |place| @left_out.include?(place) } ? :found : :undecided
      end

      # Everything that a view shows and a file keeps.
      # @param commits "id" and "title" of each place
      #: (Array[Hash[String, String]]) -> Hash[String, untyped]
      def to_facts(commits)
        tests = @done.map do |test|
          { "kind" => test.kind.to_s, "before" => commits[test.before], "after" => commits[test.after],
            "answer" => test.answer.to_s, "ratio" => test.estimate.to_h.transform_keys(&:to_s), "pairs" => test.pairs }
        end
        { "verdict" => verdict.to_s, "alpha" => alpha, "places" => commits.size - 1,
          "candidates" => commits[(@low + 1)..@high], "tests" => tests }
      end

      # The whole change, as a logarithm.
      # @api private
      def whole = @whole ||= Math.log(@done.first.estimate.point)

      private

      def judge(parts, reach)
        case @kind
        when :ends then judge_ends(parts, reach)
        when :half
          distance = (whole.positive? ? 1 : -1) * (parts.point - (0.5 * whole))
          distance.abs > reach ? (distance.positive? ? :changed : :unchanged) : nil
        when :commit then parts.point.abs > reach ? :changed : nil
        end
      end

      # The change must be known so well that half of the estimate is surely less than the change.
      def judge_ends(parts, reach)
        surely = parts.point.abs - reach
        return :changed if surely > [@margin, 0.5 * parts.point.abs].max

        :same if parts.point.abs + reach < @margin
      end

      def conclude
        @done << Done.new(kind: @kind, before: @task[0], after: @task[1], answer: @test.answer,
                          estimate: @test.estimate(1 - @alpha), pairs: @test.ratios.size)
        place = @task[1]
        @task = nil
        case [@kind, @test.answer]
        when %i[ends changed] then @kind = :half
        when %i[half changed] then @high = place
        when %i[half unchanged] then @low = place
        else @kind = nil
        end
      end

      # The middle one of the places that can be measured. The place nearest to the middle of the range could have most
      # of them on one side. The search would then take more tests than there are shares of alpha.
      def choose
        inner = ((@low + 1)...@high).reject { |place| @left_out.include?(place) }
        inner[(inner.size - 1) / 2] unless inner.empty?
      end

      # One commit remains: it is compared with the place before it, unless the ends were just that.
      def begin_commit
        @kind = @low.zero? && @done.first.after == @high ? nil : :commit
        @kind && [@low, @high]
      end
    end
  end
end
