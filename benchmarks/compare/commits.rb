# frozen_string_literal: true

require_relative "../support/error_log"
require_relative "../support/resampling"
require_relative "../support/result"
require "pitwall/experiment"

module Benchmarks
  module Compare
    # How often `pitwall compare --each` names the commit that is 3% slower among ten, how often `--bisect` names a
    # wrong one, and how often a gate (`slower by 3%`, with its second run) fails pull requests without effect and
    # catches those that are 3% slower. All on the recorded traces of identical sides, by the code that decides live.
    class Commits
      SLOWER = 0.03
      COMMITS = 10
      EACH_S = 300 # all comparisons together
      GATE_S = 50 # each of two runs: a job of two minutes, with what it builds
      BISECT_S = 30 # each test
      RUNS = { gate: 200, each: 100, bisect: 100 }.freeze
      ALPHA = 0.01
      # A trace is too slow for a goal where fewer pairs than this fit the time of one comparison.
      FEWEST = 16
      private_constant :SLOWER, :COMMITS, :EACH_S, :GATE_S, :BISECT_S, :RUNS, :ALPHA, :FEWEST

      def initialize(context)
        @context = context
        names = context.chosen(Planted::CASES.keys)
        @traces = Trace.all.select { |trace| names.include?(trace.planted) }
        @random = Random.new(1)
      end

      #: () -> Result
      def call
        rows = { gate: [], each: [], bisect: [] }
        @traces.each do |trace|
          rows[:gate] << gate(trace)
          rows[:each] << each_commit(trace)
          rows[:bisect] << bisect(trace)
          @context.progress
        end
        @context.progress("\n")
        Result.new(tables: [gate_table(rows[:gate]), each_table(rows[:each]), bisect_table(rows[:bisect])],
                   goals: @context.quick? ? [] : goals(rows), notes: [],
                   data: rows.transform_values { |list| list.map { |row| row.transform_values(&:to_s) } })
      end

      private

      def count(kind) = @context.quick? ? 1 : (@context.runs || RUNS.fetch(kind))

      def rate(hits, kind) = ErrorLog::Rate.new(hits, count(kind))

      # --- the gate

      def gate(trace)
        failed, caught = [0.0, SLOWER].map do |planted|
          runs = Resampling.new(trace, seconds: GATE_S, planted: planted, alpha: ALPHA, whole: false,
                                       seed: @random.rand(1_000_000))
          hits = Array.new(count(:gate)) { Array.new(2) { runs }.all? { |each| fails?(each) } }.count(true)
          rate(hits, :gate)
        end
        { trace: trace.name, pairs: trace.pairs_in(GATE_S), failed: failed, caught: caught }
      end

      def fails?(runs) = Pitwall::Analyse::GateResult.slower_by?(runs.outcomes(1).first.effect, 1 + SLOWER)

      # --- each commit

      def each_commit(trace)
        found = Array.new(count(:each)) { named(trace, @random.rand(1..COMMITS)) }
        { trace: trace.name, pairs: trace.pairs_in(EACH_S) / (COMMITS + 1), named: rate(found.count(:right), :each),
          wrong: rate(found.count(:wrong), :each) }
      end

      # :right where the slower commit and no other is named.
      def named(trace, slow)
        truth = (1..COMMITS).to_h { |number| [number.to_s, number == slow ? 1 + SLOWER : 1.0] }
        truth["all"] = 1 + SLOWER
        effects = measured(trace, truth)
        named = effects.select { |effect| effect.metric == "wall" && effect.name != "all" && changed?(effect) }
        return :none if named.empty?

        named.map { |effect| [effect.name, effect.verdict] } == [[slow.to_s, :slower]] ? :right : :wrong
      end

      def changed?(effect) = %i[slower faster].include?(effect.verdict) && !effect.below_margin

      def measured(trace, truth)
        comparisons = Pitwall::Experiment::Commits.comparisons(COMMITS)
        comparison = Pitwall::Analyse::Comparison.new(alpha: ALPHA / comparisons)
        pairs = trace.pairs_in(EACH_S)
        fair = pairs.fdiv(truth.size)
        most = [(Pitwall::Analyse::DividedBudget::SHARES * fair).floor, Pitwall::Analyse::Sequential::MIN_PAIRS].max
        budget = Pitwall::Analyse::DividedBudget.new(truth.transform_values { most }, comparison: comparison,
                                                                                      base: "A", side: "B")
        draws = Draws.new(trace, @random)
        number = 0
        while (name = budget.next) && (number < pairs || !budget.enough?)
          budget.add(name, draws.pair(number += 1, truth.fetch(name), name))
        end
        budget.effects
      end

      # --- the search

      def bisect(trace)
        found = Array.new(count(:bisect)) { searched(trace, @random.rand(1..COMMITS)) }
        { trace: trace.name, pairs: trace.pairs_in(BISECT_S), named: rate(found.count(:right), :bisect),
          wrong: rate(found.count(:wrong), :bisect) }
      end

      def searched(trace, slow)
        search = Pitwall::Analyse::CommitSearch.new(COMMITS + 1, alpha: ALPHA)
        draws = Draws.new(trace, @random)
        number = 0
        while (task = search.task)
          search.plan([trace.pairs_in(BISECT_S), Pitwall::Analyse::Sequential::MIN_PAIRS].max)
          factor = task[0] < slow && task[1] >= slow ? 1 + SLOWER : 1.0
          ended = false
          until ended
            pair = draws.pair(number += 1, factor, "x").sort_by(&:side)
            ended = search.add(Pitwall::Analyse::ProcessStatistic.ratio(*pair, "wall"))
          end
        end
        return :none unless search.verdict == :found

        search.high == slow ? :right : :wrong
      end

      # Pairs of a trace, neighbours together, with a random one of both processes as the base.
      class Draws
        BLOCK = 12
        private_constant :BLOCK

        def initialize(trace, random)
          @trace = trace
          @random = random
          @left = 0
        end

        #: (Integer, Float, String) -> Array[Pitwall::Record::Sample]
        def pair(number, factor, name)
          @at, @left = @random.rand(@trace.pairs.size), BLOCK if @left.zero?
          @left -= 1
          processes = @trace.pairs[(@at += 1) % @trace.pairs.size]
          base = @random.rand(2)
          processes.each_with_index.map do |process, order|
            side, times = order == base ? ["A", 1.0] : ["B", factor]
            @trace.sample(process, side, number, order, times, whole: false).tap { |sample| sample.name = name }
          end
        end
      end
      private_constant :Draws

      # --- results

      def gate_table(rows)
        Table.new("a gate `slower by 3%`, two runs of #{GATE_S} s, #{count(:gate)} pull requests each",
                  ["trace", "pairs a run", "no effect: failed", "3% slower: caught"],
                  rows.map { |row| row.values_at(:trace, :pairs, :failed, :caught) })
      end

      def each_table(rows)
        Table.new("--each over #{COMMITS} commits, one of them 3% slower, #{EACH_S} s, #{count(:each)} branches each",
                  ["trace", "pairs a commit, mean", "it alone was named", "another was named"],
                  rows.map { |row| row.values_at(:trace, :pairs, :named, :wrong) })
      end

      def bisect_table(rows)
        Table.new("--bisect over the same, #{BISECT_S} s a test, #{count(:bisect)} searches each",
                  ["trace", "pairs a test", "it was named", "another was named"],
                  rows.map { |row| row.values_at(:trace, :pairs, :named, :wrong) })
      end

      def goals(rows)
        rows[:gate].flat_map { |row| gate_goals(row) } +
          rows[:each].map do |row|
            goal("--each names it in 95% or more (#{row[:trace]})", row, :named, at_least: 0.95)
          end +
          rows[:bisect].map do |row|
            goal("--bisect names another in 1% or less (#{row[:trace]})", row, :wrong, at_most: 0.01)
          end
      end

      def gate_goals(row)
        [goal("no effect fails in 1% or less (#{row[:trace]})", row, :failed, at_most: 0.01),
         goal("3% slower is caught in 95% or more (#{row[:trace]})", row, :caught, at_least: 0.95)]
      end

      # Nothing is promised where too few pairs fit.
      def goal(text, row, key, at_least: 0.0, at_most: 1.0)
        rate = row.fetch(key)
        few = " (#{row[:pairs]} pairs only)" if row[:pairs] < FEWEST
        met = rate.share.between?(at_least, at_most)
        Goal.new(text, "#{rate}#{few}", met || few.nil? ? met : nil)
      end
    end
  end
end
