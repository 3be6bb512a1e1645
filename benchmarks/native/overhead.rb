# frozen_string_literal: true

require_relative "../support/perf_witness"
require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/statistics"
require_relative "../support/tick_cost"

module Benchmarks
  module Native
    # What a sample with native frames costs: CPU time of the process with recording less CPU time without, divided by
    # the number of ticks. The bare timer, Pitwall with and Pitwall without native frames take turns in one process. A
    # round is one process. The peer pf2 reads native stacks, too, but offers no interval below 1 ms. So pf2 and Pitwall
    # stand beside each other in a second table, at 1 ms, each in a fresh process. On a virtual machine an interrupt may
    # take ten times as long as the rest of a sample, and vary by more than that. So a third table has what perf sees of
    # Pitwall's own code. It lacks what the program loses because the handler used the processor's caches.
    class Overhead
      include TickCost

      PROGRAMS = %w[deep web_like].freeze
      CASES = %w[bare_timer pitwall_signal pitwall_native].freeze
      PEERS = %w[pitwall_native pf2_wall].freeze
      INTERVAL_NS = 100_000
      PEERS_INTERVAL_NS = 1_000_000
      ROUNDS = 10
      PEERS_ROUNDS = 5
      PASSES = 2 # in a process
      WORK_NS = 1_000_000_000
      GOAL_US = 6.0
      OWN = %w[pitwall_signal pitwall_native].freeze
      OWN_ROUNDS = 5
      SECONDS = 5 # of a process under perf
      PER_SECOND = 1993 # samples of perf's
      EXTENSION = "pitwall.so"
      private_constant :PROGRAMS, :CASES, :PEERS, :INTERVAL_NS, :PEERS_INTERVAL_NS, :ROUNDS, :PEERS_ROUNDS, :PASSES,
                       :WORK_NS, :GOAL_US, :OWN, :OWN_ROUNDS, :SECONDS, :PER_SECOND, :EXTENSION

      #: (Context) -> void
      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        @cases = @context.available(CASES)
        @peers = @context.available(PEERS)
        rounds = PROGRAMS.to_h { |program| [program, @cases.empty? ? [] : turns(program)] }
        beside = PROGRAMS.to_h { |program| [program, @peers.empty? ? [] : peers(program)] }
        reason = PerfWitness.missing
        own = reason ? {} : PROGRAMS.to_h { |program| [program, own_code(program)] }
        Result.new(tables: rounds.map { |program, found| table(program, found) } +
                           beside.map { |program, found| peers_table(program, found) } + own_table(own),
                   goals: rounds.map { |program, found| goal(program, found) } +
                          own.map { |program, found| own_goal(program, found) },
                   notes: @context.notes + [*reason], data: { turns: rounds, peers: beside, own: own })
      end

      private

      # @return [Array<Hash>] of each round: case => readings
      def turns(program)
        job = { measure: "turns", program: program, interval_ns: INTERVAL_NS, amount: fitted(program, WORK_NS),
                passes: @context.quick? ? 1 : PASSES, cases: @cases }
        Array.new(@context.rounds(ROUNDS)) do
          run = @context.scratch("native-turns") do |out|
            @context.child(profiler: "none", beside: @cases, out: out, **job)
          end
          @context.progress
          run.transform_keys(&:to_s)
        end
      end

      def peers(program)
        job = { measure: "interleaved", program: program, interval_ns: PEERS_INTERVAL_NS,
                amount: fitted(program, 2 * WORK_NS), pairs: @context.quick? ? 1 : 2 }
        Rounds.take(@context, @peers, @context.rounds(PEERS_ROUNDS)) do |name|
          @context.scratch(name) do |out|
            @context.child(profiler: name, out: (out if name.start_with?("pitwall")), **job)
          end
        end
      end

      # @return [Array<Hash>] of each round: case => µs of Pitwall's code a tick, as perf sees it
      def own_code(program)
        amount = [fitted(program, WORK_NS) / 10, 1].max # of a tenth of a second
        job = { measure: "window", program: program, amount: amount, interval_ns: INTERVAL_NS,
                seconds: @context.quick? ? 0.2 : SECONDS }
        Rounds.take(@context, @cases & OWN, @context.rounds(OWN_ROUNDS)) { |name| own_code_of(name, job) }
      end

      def own_code_of(name, job)
        @context.scratch(name) do |out|
          @context.scratch("#{name}-perf") do |data|
            witness = PerfWitness.new(data, PER_SECOND)
            run = @context.child(profiler: name, under: witness.command, out: out, **job)
            run && witness.of_object(EXTENSION, **run) * 1e6 / PER_SECOND / ticks(out)
          end
        end
      end

      def ticks(recording)
        require "pitwall/record"
        Pitwall::Record.read(recording).segments.sum { |segment| segment.stat("ticks") }
      end

      def own_table(own)
        return [] if own.empty?

        rows = own.flat_map do |program, rounds|
          (@cases & OWN).map { |name| [program, name, show(estimate(rounds.map { |round| round[name] }), 1)] }
        end
        [Table.new("what perf sees of Pitwall's code, one sample every #{INTERVAL_NS / 1000} µs " \
                   "(#{OWN_ROUNDS} processes of #{SECONDS} s; 95% intervals)",
                   ["program", "case", "CPU µs a tick, all threads"], rows)]
      end

      def own_goal(program, rounds)
        text = "Pitwall's code takes at most #{GOAL_US} µs a sample with native frames (#{program}, by perf)"
        estimate = estimate(rounds.map { |round| round["pitwall_native"] })
        return Goal.not_measured(text) if estimate.nil? || @context.quick?

        Goal.at_most(text, "#{show(estimate, 1)} µs", estimate, GOAL_US)
      end

      def table(program, rounds)
        rows = rounds.empty? ? [] : @cases.map { |name| row(name, rounds) }
        Table.new("#{program}, one sample every #{INTERVAL_NS / 1000} µs (#{rounds.size} processes; 95% intervals)",
                  ["case", "CPU ratio, whole process", "CPU ratio, program's thread", "ticks", "CPU µs a tick",
                   "above the bare timer, µs", "of that the program's thread, µs"], rows)
      end

      def row(name, rounds)
        runs = rounds.map { |round| round.fetch(name) }
        above = %i[cpu_ns thread_cpu_ns].map do |clock|
          name == "bare_timer" ? "–" : show(above_bare(name, rounds, clock), 1)
        end
        [name, show(ratio_of(runs, :cpu_ns), 3), show(ratio_of(runs, :thread_cpu_ns), 3),
         Statistics.median(runs.map { |run| run[:ticks] }).round, show(estimate(runs.map { |run| cost(run) }), 1),
         *above]
      end

      def above_bare(name, rounds, clock = :cpu_ns)
        pairs = rounds.map { |round| [name, "bare_timer"].map { |key| round[key] && cost(round[key], clock) } }
        estimate(pairs.select(&:all?).map { |ours, bare| ours - bare })
      end

      def peers_table(program, rounds)
        rows = @peers.filter_map do |name|
          runs = rounds.filter_map { |round| round[name] }
          next if runs.empty?

          [name, show(ratio_of(runs, :cpu_ns), 3), Statistics.median(runs.map { |run| run[:ticks] }).round,
           show(estimate(runs.map { |run| cost(run) }), 1)]
        end
        Table.new("#{program}, one sample every #{PEERS_INTERVAL_NS / 1000} µs (#{rounds.size} rounds; 95% intervals)",
                  ["case", "CPU ratio, whole process", "ticks", "CPU µs a tick, the timer's included"], rows)
      end

      def goal(program, rounds)
        text = "a sample with native frames costs at most #{GOAL_US} µs above the bare timer's tick (#{program})"
        estimate = above_bare("pitwall_native", rounds)
        return Goal.not_measured(text) if estimate.nil? || @context.quick?

        Goal.at_most(text, "#{show(estimate, 1)} µs", estimate, GOAL_US)
      end
    end
  end
end
