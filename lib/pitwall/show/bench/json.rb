# frozen_string_literal: true

require "json"
require "pitwall/show/profile/json_values"

module Pitwall
  module Show
    # `pitwall bench` for programs: one object. In `results` a is what was measured, b null: nothing is compared there. Cases
    # held against each other stand in `comparisons`, in the form that `results` of `pitwall compare` have.
    class BenchJson
      SCHEMA = "pitwall/bench-1"

      #: (Analyse::BenchReport) -> void
      def initialize(report)
        @report = report
      end

      # Ends without a newline.
      #: () -> String
      def to_s = JSON.generate(body)

      #: () -> Hash[String, untyped]
      def body
        summaries = @report.summaries
        JsonValues.clean({ "schema" => SCHEMA, "name" => @report.name, "facts" => @report.facts || {},
                           "results" => summaries.flat_map { |one| results(one) }, "cases" => summaries.map { |one| kase(one) },
                           "comparisons" => @report.effects.to_a.map { |effect| JsonValues.effect(effect) },
                           "growth" => JsonValues.growths(@report.growths), "samples" => summaries.map { |one| samples(one) } }
                         .merge(JsonValues.context(@report)))
      end

      private

      def results(one)
        one[:values].values.map do |value|
          { "name" => one.name, "metric" => value.metric, "unit" => value.unit, "a" => value.estimate&.point, "b" => nil, "ratio" => nil,
            "verdict" => nil, "smallest_detectable" => nil, "estimate" => JsonValues.estimate(value.estimate), "best" => value.best,
            "worst" => value.worst, "exact" => value.exact ? true : false, "better" => "lower" }
        end
      end

      def kase(one)
        { "name" => one.name, "command" => one.command ? true : false, "wall" => JsonValues.estimate(one.time),
          "ips" => JsonValues.estimate(one.rate), "best_ns" => one.best, "p95_ns" => one.p95, "first_ns" => one.first_ns,
          "first_ratio" => one.first_ratio, "cpu_share" => one.cpu_share, "gc_share" => one.gc_share,
          "processes" => one.processes, "iterations" => one.iterations, "warmup" => one.warmup }
      end

      # The median of each process, in the order they ran.
      def samples(one) = { "name" => one.name, "side" => "", "metric" => "wall", "unit" => "ns", "medians" => one.process_values }
    end
  end
end
