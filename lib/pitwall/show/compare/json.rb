# frozen_string_literal: true

require "json"
require "pitwall/show/measured/effect_words"
require "pitwall/show/measured/json_values"
require "pitwall/show/compare/commits_view"
require "pitwall/show/gc/prediction_check_view"
require "pitwall/show/compare/why_json"

module Pitwall
  module Show
    # The report of `pitwall compare` as a JSON object.
    class CompareJson
      SCHEMA = "pitwall/compare-1"

      #: (Analyse::ComparisonReport) -> void
      def initialize(report)
        @report = report
      end

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s = JSON.generate(body)

      # The JSON object.
      #: () -> Hash[String, untyped]
      def body
        context = JsonValues.context(@report)
        context["commits"] = CommitsView.new(@report).json if @report.commits
        context["search"] = @report.search if @report.search
        context["gate"] = gate if @report.gate
        context["predictions"] = predictions if @report.predictions
        JsonValues.clean({ "schema" => SCHEMA, "metric" => @report.metric, "results" => results(@report.effects),
                           "sides" => @report.sides.map { |side| side_object(side) },
                           "samples" => samples, "control" => @report.control && results(@report.control), "why" => why,
                           "growth" => JsonValues.growths(@report.growths) }.merge(context))
      end

      private

      def gate
        @report.gate.map do |result|
          { "condition" => result.condition, "failed" => result.failed?, "found" => results(result.found),
            "again" => result.again&.map { |effect| effect && JsonValues.effect(effect) } }
        end
      end

      def side_object(side)
        { "name" => side.name, "facts" => side.facts || {}, "not_counted" => @report.not_counted(side.name) }
      end

      def results(effects) = effects.map { |effect| JsonValues.effect(effect) }

      # The median of each process, from which the distributions are drawn.
      def samples
        metric = { "metric" => @report.metric, "unit" => Record::METRICS[@report.metric]&.unit }
        @report.headline.map(&:name).uniq.flat_map do |name|
          @report.medians(name).map do |side, medians|
            { "name" => name, "side" => side, **metric, "medians" => medians }
          end
        end
      end

      def predictions
        base = @report.sides.first&.name
        @report.predictions.map { |side, check| PredictionCheckView.new(check, base: base, side: side).json }
      end

      def why
        base = @report.sides.first&.name
        @report.why&.map { |side, result| WhyJson.body(result, base: base, side: side) }
      end
    end
  end
end
