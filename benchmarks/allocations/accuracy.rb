# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Allocations
    # How far counts are from the truth when objects are counted in bursts. The truth is each place's part (path, line
    # and class) of all objects when every object is counted. The programs repeat exactly, and so does the truth. The
    # error of a place with at least 1% of the objects is how far its part lies from its true part, in percent of the
    # true part.
    class Accuracy
      PROGRAMS = { "objects" => 10_000, "web_like" => 84 }.freeze
      TRUTH = "pitwall_objects"
      CASE = "pitwall_objects_bursts"
      ROUNDS = 9
      SECONDS = 2
      LEAST_SHARE = 0.01
      # Percent, of the median place and of that which nine in ten are better than.
      GOALS = { median: 2.0, ninth: 5.0 }.freeze
      private_constant :PROGRAMS, :TRUTH, :CASE, :ROUNDS, :SECONDS, :LEAST_SHARE, :GOALS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        cases = @context.available([TRUTH, CASE])
        return Result.new(tables: [], goals: [], notes: @context.notes, data: []) unless cases.size == 2

        found = PROGRAMS.to_h { |program, amount| [program, measure(program, amount, cases)] }
        Result.new(tables: found.map { |program, rounds| table(program, rounds) },
                   goals: found.flat_map { |program, rounds| goals(program, rounds) },
                   notes: @context.notes, data: found.map { |program, rounds| { program: program, rounds: rounds } })
      end

      private

      def seconds = @context.quick? ? 0.2 : SECONDS

      # [{ median:, ninth:, places: }] by round, in percent
      def measure(program, amount, cases)
        job = { measure: "once", sites: true, program: program, seconds: seconds, amount: amount }
        rounds = Rounds.take(@context, cases, @context.rounds(ROUNDS)) do |name|
          @context.scratch(name) { |out| @context.child(profiler: name, out: out, **job) }
        end
        counts = rounds.filter_map { |round| round[TRUTH] }.map { |run| run[:sites] }
        truth = shares(counts.reduce { |one, other| one.merge(other) { |_, a, b| a + b } })
        rounds.filter_map { |round| round[CASE] }.map { |run| errors(shares(run[:sites]), truth) }
      end

      def shares(counts)
        all = counts.values.sum
        counts.transform_values { |count| count.fdiv(all) }
      end

      def errors(shares, truth)
        known = truth.select { |_, share| share >= LEAST_SHARE }
        errors = known.map { |place, share| ((shares.fetch(place, 0.0) / share) - 1).abs * 100 }.sort
        { median: Statistics.median(errors), ninth: errors[(errors.size * 0.9).ceil - 1], places: errors.size }
      end

      def table(program, rounds)
        rows = GOALS.keys.map do |which|
          values = rounds.map { |round| round[which] }
          [{ median: "the median place", ninth: "better in nine of ten places" }.fetch(which),
           *[Statistics.median(values), values.min, values.max].map { |value| format("%.1f", value) }]
        end
        title = "#{program}, #{rounds.size} rounds of #{seconds} s, " \
                "#{rounds.first&.fetch(:places)} places with 1% or more (error in % of the place's part)"
        Table.new(title,
                  ["error of", "median round", "best", "worst"], rows)
      end

      def goals(program, rounds)
        GOALS.map do |which, limit|
          subject = { median: "the median place", ninth: "nine places in ten" }.fetch(which)
          text = "error of #{subject} at most #{limit}% (#{program})"
          next Goal.not_measured(text) if @context.quick? || rounds.empty?

          figure = Statistics.median(rounds.map { |round| round[which] })
          Goal.new(text, format("%.1f%%", figure), figure <= limit)
        end
      end
    end
  end
end
