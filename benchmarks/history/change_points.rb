# frozen_string_literal: true

require_relative "../support/e_divisive"
require_relative "../support/result"
require_relative "../support/traces"
require "pitwall/analyse"

module Benchmarks
  module History
    # How often `pitwall history` finds a step of 3%, and how many changes it sees where there are none. Series of 200
    # results have the noise of recorded processes (benchmarks/traces). A result is the median of 40 neighbouring
    # processes. `pitwall bench` takes at most so many. The step stands at a random place between the 30th and the 170th
    # result. It counts as found if a change is seen within 20 results of it. Our own implementation of e-divisive
    # judges some of the same series.
    class ChangePoints
      RESULTS = 200
      PROCESSES = 40
      STEP = 1.03
      NEAR = 20
      CLOSE = 10
      SERIES = 200
      REFERENCE = 20
      TRACES = { "method_1ms, idle" => %w[method_1ms idle], "method_1ms, busy" => %w[method_1ms busy],
                 "command_150ms, busy" => %w[command_150ms busy] }.freeze
      private_constant :RESULTS, :PROCESSES, :STEP, :NEAR, :CLOSE, :SERIES, :REFERENCE, :TRACES

      Score = Struct.new(:series, :found, :close, :extra, :still)
      private_constant :Score

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        count, few = @context.quick? ? [4, 1] : [SERIES, REFERENCE]
        found = TRACES.to_h { |name, place| [name, scores(place, count, few)] }
        Result.new(tables: [table(found)], goals: goals(found.fetch("method_1ms, idle").fetch("pitwall")),
                   notes: found.keys.map { |name| "#{name}: a result varies by #{percent(spread(TRACES[name]))}" },
                   data: found.transform_values { |tools| tools.transform_values(&:to_h) })
      end

      private

      def scores(place, count, few)
        tools = { "pitwall" => [count, ->(values) { Pitwall::Analyse::ChangePoints.of(values).map(&:at) }],
                  "e-divisive" => [few, ->(values) { EDivisive.of(values, random: Random.new(1)) }] }
        tools.transform_values { |number, tool| score(place, number, &tool) }
      end

      def score(place, count)
        random = Random.new(7)
        score = Score.new(count, 0, 0, 0, 0)
        count.times do
          noise = series(place, random)
          at = random.rand(30..170)
          changes = yield(noise.each_with_index.map { |value, index| index < at ? value : value * STEP })
          near, others = changes.partition { |change| (change - at).abs <= NEAR }
          score.found += 1 if near.any?
          score.close += 1 if near.any? { |change| (change - at).abs <= CLOSE }
          score.extra += others.size + [near.size - 1, 0].max
          score.still += yield(noise).size
        end
        score
      end

      # Results of the recorded noise. Neighbouring processes make one result, so that what lasts longer than a process
      # stays in it.
      def series(place, random)
        processes = processes(place)
        Array.new(RESULTS) do
          from = random.rand(processes.size)
          values = Array.new(PROCESSES) { |number| processes[(from + number) % processes.size] }
          Pitwall::Analyse::Statistics.median(values)
        end
      end

      def processes(place)
        (@processes ||= {})[place] ||= Trace.read(Trace.path(*place)).pairs.map { |pair| pair[0][1] + pair[0][5].to_i }
      end

      # As a standard deviation.
      def spread(place)
        logarithms = series(place, Random.new(3)).map { |value| Math.log(value) }
        mean = logarithms.sum / logarithms.size
        Math.sqrt(logarithms.sum { |value| (value - mean)**2 } / logarithms.size)
      end

      def table(found)
        rows = found.flat_map do |name, tools|
          tools.map do |tool, score|
            shares = [score.found, score.close].map { |count| percent(count.fdiv(score.series)) }
            wrong = [score.extra, score.still].map { |count| format("%.3f", count.fdiv(score.series)) }
            [name, tool, score.series, *shares, *wrong]
          end
        end
        Table.new("a step of 3% in #{RESULTS} results", ["noise", "tool", "series", "found", "within #{CLOSE} results",
                                                         "others a series", "a series without a step"], rows)
      end

      def goals(score)
        false_points = [score.extra, score.still].max.fdiv(score.series)
        [Goal.new("a step of 3% found in at least 90% of series", percent(score.found.fdiv(score.series)),
                  score.found >= 0.9 * score.series),
         Goal.new("at most one false change a series", format("%.3f", false_points), false_points <= 1)]
      end

      def percent(share) = "#{format("%.1f", share * 100)}%"
    end
  end
end
