# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Tracer
    # What tracing every call costs the program: CPU time with a tracer divided by CPU time before its first start, for
    # a fixed amount of work. A round runs every case once, each in a fresh process, in random order. The case without
    # any tracer is the control. bare_hook is a hook that does nothing: its cost is Ruby's own cost of calling hooks.
    class Overhead
      # program => [work of one run, goals by case: at most so many times]
      PROGRAMS = {
        "call_heavy" => [300, { "trace_wall" => RUBY_VERSION < "3.2" ? 11.0 : 9.0, "trace_cpu" => 9.5 }],
        "web_like" => [1000, { "trace_wall" => 1.6, "trace_cpu" => 1.7, "trace_bytes" => 1.9 }]
      }.freeze
      CASES = %w[none bare_hook trace_wall trace_cpu trace trace_bytes ruby_prof].freeze
      ROUNDS = 7
      private_constant :PROGRAMS, :CASES, :ROUNDS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        @cases = @context.available(CASES)
        series = PROGRAMS.to_h { |program, (amount, _)| [program, measure(program, @context.quick? ? 5 : amount)] }
        Result.new(tables: series.map { |program, rounds| table(program, rounds) },
                   goals: PROGRAMS.flat_map do |program, (_, goals)|
                     goals.map { |name, most| goal(program, name, most, series.fetch(program)) }
                   end,
                   notes: @context.notes, data: series.map { |program, rounds| { program: program, rounds: rounds } })
      end

      private

      def measure(program, amount)
        job = { measure: "before", program: program, amount: amount, pairs: @context.quick? ? 1 : 3 }
        Rounds.take(@context, @cases, @context.rounds(ROUNDS)) do |name|
          @context.scratch(name) do |out|
            @context.child(profiler: name, out: (out if name.start_with?("trace")), **job)
          end
        end
      end

      def table(program, rounds)
        names = rounds.flat_map(&:keys).uniq.sort_by { |name| CASES.index(name) }
        Table.new("#{program} (#{rounds.size} rounds; 95% intervals)", ["case", "CPU ratio"],
                  names.map { |name| [name, show(estimate(rounds, name))] })
      end

      def estimate(rounds, name)
        runs = rounds.filter_map { |round| round[name] }
        Statistics.ratio(runs.map { |run| run[:on][:cpu_ns].fdiv(run[:off][:cpu_ns]) }) if runs.any?
      end

      def show(estimate) = estimate.text("%.2f")

      def goal(program, name, most, rounds)
        text = "#{name} costs at most #{most} times (#{program})"
        estimate = estimate(rounds, name)
        return Goal.not_measured(text) if estimate.nil? || @context.quick?

        Goal.at_most(text, show(estimate), estimate, most)
      end
    end
  end
end
