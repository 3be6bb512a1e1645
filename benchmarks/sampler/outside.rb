# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Sampler
    # Reading from outside: does it see the leaves that signals see, and what does Pitwall spend on a look?
    #
    # Leaves: a round profiles the same work by signals twice and from outside once, each in a fresh process. The
    # distance of two profiles is half the sum of the differences of all methods' own shares (0: the same; 1: nothing in
    # common). Reading from outside agrees if its distance from signals is at most the distance between both by signals.
    #
    # Looks: CPU time of Pitwall's threads, at 10 kHz, for a program that sleeps, one that computes, and one that sleeps
    # with many threads. Most of a look is waking up, which the kernel does.
    class Outside
      PROGRAMS = { "web_like" => 400, "deep" => 100_000 }.freeze # amounts repeated for so long
      LEAF_CASES = { "signal" => "pitwall_signal", "signal again" => "pitwall_signal",
                     "outside" => "pitwall_outside" }.freeze
      LOOKS = { "main sleeps" => [0, false], "main computes" => [0, true],
                "main and 200 threads sleep" => [200, false] }.freeze
      LEAF_INTERVAL_NS = 500_000
      LOOK_INTERVAL_NS = 100_000
      SLEEPERS = 200
      ROUNDS = 10
      SECONDS = 1.5
      MOST_METHODS = 5
      GOAL_RUNNING_US = 16.0
      GOAL_UNCHANGED_US = 1.0
      private_constant :PROGRAMS, :LEAF_CASES, :LOOKS, :LEAF_INTERVAL_NS, :LOOK_INTERVAL_NS, :SLEEPERS, :ROUNDS,
                       :SECONDS, :MOST_METHODS, :GOAL_RUNNING_US, :GOAL_UNCHANGED_US

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        unless @context.available(%w[pitwall_signal pitwall_outside]).size == 2
          return Result.new(tables: [], goals: [], notes: @context.notes, data: [])
        end

        leaves = PROGRAMS.to_h { |program, amount| [program, profiles(program, amount)] }
        looks = Rounds.take(@context, LOOKS.keys, @context.rounds(ROUNDS)) { |name| look(*LOOKS.fetch(name)) }
        method_tables = leaves.map { |program, rounds| method_table(program, rounds) }
        Result.new(tables: [distance_table(leaves), *method_tables, look_table(looks)],
                   goals: leaves.map { |program, rounds| distance_goal(program, rounds) } + look_goals(looks),
                   notes: @context.notes,
                   data: [*leaves.map { |program, rounds| { program: program, rounds: rounds } }, { looks: looks }])
      end

      private

      def seconds = @context.quick? ? 0.1 : SECONDS

      # --- leaves ---

      def profiles(program, amount)
        job = { measure: "once", program: program, interval_ns: LEAF_INTERVAL_NS, seconds: seconds,
                amount: @context.quick? ? 5 : amount / 20, leaves: true }
        rounds = Rounds.take(@context, LEAF_CASES.keys, @context.rounds(ROUNDS)) do |name|
          run = @context.scratch(name.tr(" ", "_")) do |out|
            @context.child(profiler: LEAF_CASES.fetch(name), out: out, **job)
          end
          run&.fetch(:leaves)
        end
        complete = rounds.select { |round| round.size == LEAF_CASES.size }
        complete.map { |round| round.transform_values { |weights| shares(weights) } }
      end

      def shares(weights)
        whole = weights.values.sum
        weights.transform_values { |weight| weight.fdiv(whole) }
      end

      def distance(one, other)
        (one.keys | other.keys).sum { |name| (one.fetch(name, 0) - other.fetch(name, 0)).abs } / 2
      end

      # [between two runs by signals, between signals and outside], in points
      def distances(rounds)
        rounds.map do |round|
          a, b, outside = round.values_at(*LEAF_CASES.keys)
          [distance(a, b) * 100, (distance(a, outside) + distance(b, outside)) * 50]
        end
      end

      def excess(rounds) = Statistics.estimate(distances(rounds).map { |signals, outside| outside - signals })

      def distance_table(leaves)
        rows = leaves.map do |program, rounds|
          next [program, "–", "–", "–"] if rounds.empty?

          signals, outside = distances(rounds).transpose.map { |values| Statistics.estimate(values) }
          [program, show(signals, 2), show(outside, 2), show(excess(rounds), 2)]
        end
        Table.new("How far two profiles of the same work are apart, by methods' own CPU shares (points; " \
                  "#{@context.rounds(ROUNDS)} rounds of #{seconds} s, #{LEAF_INTERVAL_NS / 1000} µs; 95% intervals)",
                  ["program", "signals and signals again", "signals and outside", "the latter farther by"], rows)
      end

      # The methods at which the two ways differ most.
      def method_table(program, rounds)
        names = rounds.flat_map { |round| round.values.flat_map(&:keys) }.uniq
        rows = names.map do |name|
          differences = rounds.map do |round|
            outside, *signals = round.values_at("outside", "signal", "signal again").map { |own| own.fetch(name, 0) }
            (outside - (signals.sum / 2)) * 100
          end
          share = Statistics.mean(rounds.map { |round| round["signal"].fetch(name, 0) * 100 })
          noise = rounds.map { |round| (round["signal"].fetch(name, 0) - round["signal again"].fetch(name, 0)) * 100 }
          [name, format("%.2f", share), Statistics.estimate(differences), Statistics.estimate(noise)]
        end
        rows = rows.max_by(MOST_METHODS) { |row| row[2].point.abs }.map do |name, share, difference, noise|
          [name, share, show(difference, 2), show(noise, 2)]
        end
        Table.new("#{program}: methods whose own CPU shares differ most (points)",
                  ["method", "share by signals", "outside − signals", "signals − signals again"], rows)
      end

      def distance_goal(program, rounds)
        text = "leaves from outside are as near to signals' as those of two runs by signals to each other (#{program})"
        return Goal.not_measured(text) if rounds.size < 3 || @context.quick?

        found = excess(rounds)
        Goal.new(text, "farther by #{show(found, 2)} points", found.low <= 0)
      end

      # --- looks ---

      def look(sleepers, busy)
        job = { measure: "ticks", program: "standing", interval_ns: LOOK_INTERVAL_NS, seconds: seconds,
                sleepers: sleepers, busy: busy }
        @context.scratch("look") { |out| @context.child(profiler: "pitwall_outside", out: out, **job) }
      end

      def cost(run) = run[:own_ns] / 1e3 / [run[:looks], 1].max

      # µs of a look with `name`, of each round
      def costs(looks, name) = looks.filter_map { |round| cost(round[name]) if round[name] }

      def above(looks, name, base, among = 1)
        pairs = looks.map { |round| round.values_at(name, base) }.select(&:all?)
        Statistics.estimate(pairs.map { |one, less| (cost(one) - cost(less)) / among })
      end

      def look_table(looks)
        rows = LOOKS.keys.map do |name|
          late = looks.filter_map { |round| 100 - (round[name][:looks] * 100.0 / round[name][:due]) if round[name] }
          [name, show(Statistics.estimate(costs(looks, name)), 1), format("%.1f", Statistics.median(late))]
        end
        title = "CPU of Pitwall's threads a look at 10 kHz " \
                "(µs; #{@context.rounds(ROUNDS)} rounds of #{seconds} s; 95% intervals)"
        Table.new(title,
                  ["program", "µs a look", "looks that came late by a tick or more, %"], rows)
      end

      def look_goals(looks)
        base, busy, many = LOOKS.keys
        running, unchanged = [above(looks, busy, base), above(looks, many, base, SLEEPERS)]
        whole = Statistics.estimate(costs(looks, busy))
        texts = ["Pitwall's threads take at most #{GOAL_RUNNING_US} µs a tick of a running thread, waking included",
                 "of it above a tick at which nothing has changed",
                 "at most #{GOAL_UNCHANGED_US} µs for an unchanged thread"]
        return texts.map { |text| Goal.not_measured(text) } if @context.quick?

        figures = [[whole, GOAL_RUNNING_US], [running, GOAL_RUNNING_US], [unchanged, GOAL_UNCHANGED_US]]
        figures.zip(texts).map { |(found, limit), text| Goal.at_most(text, "#{show(found, 2)} µs", found, limit) }
      end

      def show(estimate, digits)
        return format("%.#{digits}f", estimate.point) unless estimate.high.finite?

        format("%.#{digits}f (%.#{digits}f … %.#{digits}f)", estimate.point, estimate.low, estimate.high)
      end
    end
  end
end
