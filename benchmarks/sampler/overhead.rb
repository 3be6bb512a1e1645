# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/statistics"
require_relative "../support/tick_cost"

module Benchmarks
  module Sampler
    # What profiling costs the program: CPU time with a profiler divided by CPU time without, for a fixed amount of
    # work, and from that the cost of one tick. A round runs every case once, each in a fresh process, in random order.
    # Each process does the work with and without its profiler in turns. The case without any profiler is the control:
    # its ratio is 1 but for noise.
    class Overhead
      include TickCost

      PROGRAMS = %w[deep web_like].freeze
      # A tenth of what 10 kHz costs is what 1 kHz costs: measured at 1 kHz it would be little above the noise.
      INTERVALS_NS = [100_000].freeze
      CASES = %w[none bare_timer pitwall_signal pitwall_outside pitwall_safepoint stackprof_wall stackprof_cpu vernier
                 pf2_wall].freeze
      ROUNDS = 15
      PAIRS = 2               # in a process
      WORK_NS = 1_000_000_000 # of a turn without a profiler: so long that naming each frame once has no visible share
      COST_INTERVAL_NS = 100_000
      GOAL_US = 3.0
      GOAL_OUTSIDE = 1.05
      GOAL_OUTSIDE_TENTH = 1.01
      private_constant :PROGRAMS, :INTERVALS_NS, :CASES, :ROUNDS, :PAIRS, :WORK_NS, :COST_INTERVAL_NS, :GOAL_US,
                       :GOAL_OUTSIDE, :GOAL_OUTSIDE_TENTH

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        @cases = @context.available(CASES)
        series = PROGRAMS.product(INTERVALS_NS).to_h do |program, interval_ns|
          [[program, interval_ns], measure(program, interval_ns)]
        end
        Result.new(tables: series.map { |key, rounds| table(*key, rounds) },
                   goals: PROGRAMS.flat_map { |program| [goal(program, series), *outside_goals(program, series)] },
                   notes: @context.notes + ["pf2 offers no interval below 1 ms"],
                   data: series.map do |(program, interval_ns), rounds|
                     { program: program, interval_ns: interval_ns, rounds: rounds }
                   end)
      end

      private

      def measure(program, interval_ns)
        names = @cases.select { |name| Profilers.offers?(name, interval_ns) }
        job = { measure: "interleaved", program: program, interval_ns: interval_ns, amount: fitted(program, WORK_NS),
                pairs: @context.quick? ? 1 : PAIRS }
        Rounds.take(@context, names, @context.rounds(ROUNDS)) do |name|
          @context.scratch(name) do |out|
            @context.child(profiler: name, out: (out if name.start_with?("pitwall")), **job)
          end
        end
      end

      def table(program, interval_ns, rounds)
        names = rounds.flat_map(&:keys).uniq.sort_by { |name| CASES.index(name) }
        Table.new("#{program}, one sample every #{interval_ns / 1000} µs (#{rounds.size} rounds; 95% intervals)",
                  ["case", "CPU ratio, whole process", "CPU ratio, program's thread",
                   "the same at a tenth of the rate", "ticks", "CPU µs a tick", "above the bare timer, µs"],
                  names.map { |name| row(name, rounds) })
      end

      def row(name, rounds)
        runs = rounds.filter_map { |round| round[name] }
        [name, ratio(runs, :cpu_ns), ratio(runs, :thread_cpu_ns), tenth(runs), ticks(runs),
         show(estimate(runs.map { |run| cost(run) }), 1),
         name == "bare_timer" ? "–" : show(above_bare(name, rounds), 1)]
      end

      def ratio(runs, clock) = show(ratio_of(runs, clock), 3)
      # At 1 kHz it would be little above the noise.
      def tenth(runs) = show(tenth_of(ratio_of(runs, :thread_cpu_ns)), 4)
      def tenth_of(estimate) = estimate.map { |ratio| 1 + ((ratio - 1) / 10) }

      def ticks(runs)
        counts = runs.filter_map { |run| run[:ticks] }
        counts.any? ? Statistics.median(counts).round : "–"
      end

      def above_bare(name, rounds)
        estimate(rounds.map do |round|
          run, bare = round.values_at(name, "bare_timer").map { |found| found && cost(found) }
          run - bare if run && bare
        end)
      end

      def goal(program, series)
        text = "a sample by signal costs at most #{GOAL_US} µs above the bare timer's tick (#{program})"
        estimate = above_bare("pitwall_signal", series.fetch([program, COST_INTERVAL_NS]))
        return Goal.not_measured(text) if estimate.nil? || @context.quick?

        Goal.at_most(text, "#{show(estimate, 1)} µs", estimate, GOAL_US)
      end

      def outside_goals(program, series)
        texts = ["read from outside, the program's thread takes at most #{GOAL_OUTSIDE} of its time (#{program})",
                 "and a tenth of that at 1 kHz: at most #{GOAL_OUTSIDE_TENTH} (#{program})"]
        runs = series.fetch([program, COST_INTERVAL_NS]).filter_map { |round| round["pitwall_outside"] }
        return texts.map { |text| Goal.not_measured(text) } if runs.empty? || @context.quick?

        estimate = ratio_of(runs, :thread_cpu_ns)
        tenth = tenth_of(estimate)
        [Goal.at_most(texts[0], show(estimate, 3), estimate, GOAL_OUTSIDE),
         Goal.at_most(texts[1], show(tenth, 4), tenth, GOAL_OUTSIDE_TENTH)]
      end
    end
  end
end
