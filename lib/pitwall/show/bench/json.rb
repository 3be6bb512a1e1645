# frozen_string_literal: true

require "json"
require "pitwall/show/measured/json_values"

module Pitwall
  module Show
    # The report of `pitwall bench` as a JSON object. In `results`, `a` is the measured value and `b` is null.
    # `comparisons` has the compared cases, in the form of the `results` of `pitwall compare`.
    class BenchJson
      SCHEMA = "pitwall/bench-1"

      #: (Analyse::BenchReport) -> void
      def initialize(report)
        @report = report
      end

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s = JSON.generate(body)

      # The JSON object.
      #: () -> Hash[String, untyped]
      def body
        summaries = @report.summaries
        object = { "schema" => SCHEMA, "name" => @report.name, "facts" => @report.facts || {},
                   "not_counted" => @report.not_counted,
                   "results" => summaries.flat_map { |one| results(one) },
                   "cases" => summaries.map { |one| kase(one) },
                   "comparisons" => @report.effects.to_a.map { |effect| JsonValues.effect(effect) },
                   "growth" => JsonValues.growths(@report.growths),
                   "samples" => summaries.map { |one| samples(one) } }
        JsonValues.clean(object.merge(JsonValues.context(@report)))
      end

      private

      def results(one)
        one[:values].values.map do |value|
          { "name" => one.name, "metric" => value.metric, "unit" => value.unit, "a" => value.estimate&.point,
            "b" => nil, "ratio" => nil, "verdict" => nil, "smallest_detectable" => nil,
            "estimate" => JsonValues.estimate(value.estimate), "best" => value.best, "worst" => value.worst,
            "exact" => value.exact ? true : false, "better" => "lower" }
        end
      end

      def kase(one)
        { "name" => one.name, "command" => one.command ? true : false, "wall" => JsonValues.estimate(one.time),
          "ips" => JsonValues.estimate(one.rate), "best_ns" => one.best, "p95_ns" => one.p95,
          "first_ns" => one.first_ns, "first_ratio" => one.first_ratio,
          "cpu_share" => one.cpu_share, "gc_share" => one.gc_share,
          "processes" => one.processes, "iterations" => one.iterations, "warmup" => one.warmup }
      end

      # The median of each process, in the order of the runs.
      def samples(one)
        { "name" => one.name, "side" => "", "metric" => "wall", "unit" => "ns", "medians" => one.process_values }
      end
    end
  end
end
