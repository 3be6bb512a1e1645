# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Allocations
    # What counting objects costs the program: CPU time with counting divided by CPU time without, for a fixed amount
    # of work. A round runs every case once, each in a fresh process, in random order. Each process does the work with
    # and without counting in turns.
    class Overhead
      PROGRAMS = %w[objects web_like].freeze
      CASES = %w[none pitwall_objects pitwall_objects_stacks pitwall_objects_growth pitwall_objects_growth_100
                 pitwall_objects_bursts stackprof_objects vernier_objects object_space].freeze
      CASES_NOTE = "pitwall_objects: exact, with ages and bytes; _stacks: whole stacks as well; " \
                   "_growth: allocations --growth, _100 with --sample 1/100; " \
                   "_bursts: profile --allocations without samples"
      ROUNDS = 12
      PAIRS = 2
      WORK_NS = 1_000_000_000
      # By case and program.
      GOALS = { %w[pitwall_objects objects] => 1.7, %w[pitwall_objects web_like] => 1.45,
                %w[pitwall_objects_bursts objects] => 1.03, %w[pitwall_objects_bursts web_like] => 1.03 }.freeze
      private_constant :PROGRAMS, :CASES, :ROUNDS, :PAIRS, :WORK_NS, :GOALS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        @cases = @context.available(CASES)
        series = PROGRAMS.to_h { |program| [program, measure(program)] }
        Result.new(tables: series.map { |program, rounds| table(program, rounds) },
                   goals: GOALS.map { |key, limit| goal(*key, limit, series) },
                   notes: [*@context.notes, CASES_NOTE],
                   data: series.map { |program, rounds| { program: program, rounds: rounds } })
      end

      private

      def measure(program)
        job = { measure: "interleaved", program: program, amount: amount(program), pairs: @context.quick? ? 1 : PAIRS }
        Rounds.take(@context, @cases, @context.rounds(ROUNDS)) do |name|
          @context.scratch(name) do |out|
            @context.child(profiler: name, out: (out if name.start_with?("pitwall")), **job)
          end
        end
      end

      # The same for every case and round, fitted once to this machine.
      def amount(program)
        return 20 if @context.quick?

        trial = { "objects" => 50_000, "web_like" => 200 }.fetch(program)
        run = @context.child(profiler: "none", measure: "interleaved", program: program, amount: trial, pairs: 2)
        (trial * WORK_NS / (run[:off][:cpu_ns] / 2.0)).ceil
      end

      def table(program, rounds)
        names = rounds.flat_map(&:keys).uniq.sort_by { |name| CASES.index(name) }
        rows = names.map do |name|
          [name, *%i[cpu_ns thread_cpu_ns].map { |clock| show(ratio(name, rounds, clock)) }]
        end
        Table.new("#{program} (#{rounds.size} rounds; 95% intervals)",
                  ["case", "CPU ratio, whole process", "CPU ratio, program's thread"], rows)
      end

      def ratio(name, rounds, clock)
        runs = rounds.filter_map { |round| round[name] }
        Statistics.ratio(runs.map { |run| run[:on][clock].fdiv(run[:off][clock]) })
      end

      def show(estimate) = estimate.text("%.3f")

      def goal(name, program, limit, series)
        text = "#{name} costs at most #{limit} times the CPU time (#{program})"
        return Goal.not_measured(text) if @context.quick? || !@cases.include?(name)

        estimate = ratio(name, series.fetch(program), :cpu_ns)
        Goal.at_most(text, show(estimate), estimate, limit)
      end
    end
  end
end
