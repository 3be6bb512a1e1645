# frozen_string_literal: true

require_relative "../support/context"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/shop"
require_relative "../support/statistics"

module Benchmarks
  module Boot
    # What `pitwall boot` costs the start of a Rails application, in turns with the start alone.
    class Cost
      ROUNDS = 15
      MOST = 1.15
      WAYS = { "plain" => nil, "boot" => { "boot.on": 1 } }.freeze
      private_constant :ROUNDS, :MOST, :WAYS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        unless Shop.prepared?
          return Result.new(tables: [table([])], goals: [Goal.not_measured(goal_text)], notes: [Shop::MISSING],
                            data: {})
        end

        rounds = Rounds.take(@context, WAYS.keys, @context.rounds(ROUNDS)) { |way| Shop.cpu_of_start(WAYS.fetch(way)) }
        Result.new(tables: [table(rounds)], goals: [goal(rounds)], notes: [], data: { "rounds" => rounds })
      end

      private

      def ratio(rounds) = Statistics.ratio(rounds.map { |round| round["boot"].fdiv(round["plain"]) })

      def table(rounds)
        rows = WAYS.keys.reject { rounds.empty? }.map do |name|
          seconds = Statistics.median(rounds.map { |round| round[name] }) / 1e9
          [name, format("%.2f", seconds), name == "plain" ? "1" : show(ratio(rounds))]
        end
        Table.new("bin/rails runner 1, s of CPU time (ratio with its 95% interval)", %w[way seconds ratio], rows)
      end

      def goal_text = "a recorded boot takes at most #{MOST} of a plain one"

      def goal(rounds)
        estimate = ratio(rounds)
        return Goal.not_measured(goal_text) unless estimate.high&.finite?

        Goal.at_most(goal_text, show(estimate), estimate, MOST)
      end

      def show(estimate) = estimate.text("%.3f")
    end
  end
end
