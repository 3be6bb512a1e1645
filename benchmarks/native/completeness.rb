# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Native
    # How many native stacks reach the function that their thread or fiber began with. The counters of the recording say
    # so. The frames next to the root are their witness: they are the functions that threads and fibers begin with, and
    # no others. In the stacks of the peer pf2 the outermost function with a name is looked at. A main thread's is
    # `__libc_start_main`, because few `_start` have a name. With `RUBYOPT=--yjit` all of this is measured under YJIT.
    class Completeness
      # program => amount of work between two looks at the clock
      PROGRAMS = { "call_heavy" => 1, "objects" => 2000, "extensions" => 1, "requires" => 50, "workers" => 1,
                   "fibers" => 1, "c_blocks" => 1, "web_like" => 20, "deep" => 2000, "mixed" => 0.1 }.freeze
      THREADED = %w[workers fibers mixed].freeze
      CASES = %w[pitwall_native pf2_wall].freeze
      INTERVAL_NS = 1_000_000
      OURS_INTERVAL_NS = 200_000
      ROUNDS = 3
      SECONDS = 2
      GOAL_PERCENT = 99.0
      LISTED = 3
      # What pf2's stacks of a main thread end in.
      START = /\A(?:_start|__libc_start_(?:main|call_main).*)\z/.freeze
      private_constant :PROGRAMS, :THREADED, :CASES, :INTERVAL_NS, :OURS_INTERVAL_NS, :ROUNDS, :SECONDS, :GOAL_PERCENT,
                       :LISTED, :START

      #: (Context) -> void
      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        @cases = @context.available(CASES)
        found = PROGRAMS.to_h { |program, amount| [program, measure(program, amount)] }
        Result.new(tables: [*table(found), *peer_table(found)], goals: goals(found), notes: @context.notes,
                   data: found.map { |program, rounds| { program: program, rounds: rounds } })
      end

      private

      def measure(program, amount)
        job = { measure: "once", program: program, amount: amount, seconds: @context.quick? ? 0.1 : SECONDS,
                roots: true }
        Rounds.take(@context, @cases, @context.rounds(ROUNDS)) do |name|
          @context.scratch(name) do |out|
            ours = name.start_with?("pitwall")
            interval_ns = ours ? OURS_INTERVAL_NS : INTERVAL_NS
            @context.child(profiler: name, out: (out if ours), interval_ns: interval_ns, **job)
          end
        end
      end

      def table(found)
        return [] unless @cases.include?("pitwall_native")

        rows = found.map do |program, rounds|
          stacks, lost, guessed = counts(rounds)
          [program, stacks, percent(stacks - lost, stacks), percent(guessed, stacks),
           outermost(rounds, "pitwall_native")]
        end
        [Table.new("stacks of Pitwall, one every #{OURS_INTERVAL_NS / 1000} µs, #{@context.rounds(ROUNDS)} runs of " \
                   "#{SECONDS} s",
                   ["program", "native stacks", "reach the start, %", "joined with Ruby's frames by guess, %",
                    "frames next to the root"], rows)]
      end

      def peer_table(found)
        return [] unless @cases.include?("pf2_wall")

        rows = found.map do |program, rounds|
          roots = roots_of(rounds, "pf2_wall")
          started = roots.sum { |name, count| START.match?(name) ? count : 0 }
          [program, roots.values.sum, THREADED.include?(program) ? "–" : percent(started, roots.values.sum),
           outermost(rounds, "pf2_wall")]
        end
        [Table.new("stacks of pf2, one every #{INTERVAL_NS / 1000} µs; programs with one thread and without fibers",
                   ["program", "samples", "reach __libc_start_main, %", "outermost functions with a name"], rows)]
      end

      # @return [Array<Integer>] native stacks, those that do not reach the start, those joined by guess
      def counts(rounds)
        counters = rounds.filter_map { |round| round.dig("pitwall_native", :counters) }
        %i[native_stacks native_lost native_guessed].map { |name| counters.sum { |run| run.fetch(name) } }
      end

      def roots_of(rounds, name)
        rounds.filter_map { |round| round.dig(name, :roots) }
              .each_with_object(Hash.new(0)) { |roots, sums| roots.each { |root, count| sums[root.to_s] += count } }
      end

      def outermost(rounds, name)
        roots = roots_of(rounds, name)
        listed = roots.sort_by { |_name, count| -count }.first(LISTED)
        listed.map { |root, count| "#{root} #{percent(count, roots.values.sum)}%" }.join(", ")
      end

      def percent(part, whole) = whole.zero? ? "–" : format("%.2f", 100.0 * part / whole)

      def goals(found)
        found.map do |program, rounds|
          text = "at least #{GOAL_PERCENT}% of native stacks reach the thread's start (#{program})"
          stacks, lost, = counts(rounds)
          next Goal.not_measured(text) if stacks.zero? || @context.quick?

          share = 100.0 * (stacks - lost) / stacks
          Goal.new(text, format("%.2f%%", share), share >= GOAL_PERCENT)
        end
      end
    end
  end
end
