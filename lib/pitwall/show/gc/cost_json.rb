# frozen_string_literal: true

module Pitwall
  module Show
    # `gc_cost` of the JSON report: lines with their own time and the GC time charged to them, and a prediction.
    # Without samples own_ns and together_ns are null, and a saving is GC time only.
    class GCCostJson
      MODEL = "gc_ns is a model: each run's time is divided among the places that allocated since the run before, " \
              "by objects or malloc'd bytes"
      private_constant :MODEL

      # @param prediction [Analyse::GCPrediction, nil]
      #: (Analyse::GCCost, ?prediction: Analyse::GCPrediction?, ?limit: Integer?) -> void
      def initialize(cost, prediction: nil, limit: nil)
        @cost = cost
        @prediction = prediction
        @limit = limit
      end

      # The JSON object.
      #: () -> Hash[String, untyped]
      def to_h
        rows = @limit ? @cost.rows.first(@limit) : @cost.rows
        timed = @cost.samples?
        object = { "model" => MODEL, "weight" => @cost.weight.to_s, "wall_ns" => @cost.wall_ns,
                   "whole_ns" => @cost.whole_ns, "gc_ns" => @cost.gc_ns, "charged_ns" => @cost.charged_ns,
                   "sampled" => @cost.sampled?, "stacks" => @cost.stacks?, "disturbed" => @cost.disturbed?,
                   "lines" => rows.map { |row| row(row, timed) } }
        object["prediction"] = GCCostJson.prediction(@prediction) if @prediction
        object
      end

      # The JSON object of a prediction.
      #: (Analyse::GCPrediction) -> Hash[String, untyped]
      def self.prediction(prediction)
        { "place" => prediction.place, "weight" => prediction.weight.to_s,
          "saving_ns" => estimate(prediction.saving), "own_ns" => estimate(prediction.own),
          "gc_ns" => estimate(prediction.gc), "runs_avoided" => estimate(prediction.runs),
          "runs" => prediction.all_runs, "run_ns" => prediction.cost_ns,
          "objects" => prediction.objects, "bytes" => prediction.bytes,
          "wall_ns" => prediction.wall_ns, "whole_ns" => prediction.whole_ns,
          "doubts_ns" => prediction.doubts.to_h { |name, ns| [name.to_s, ns.round] } }
      end

      def self.estimate(estimate)
        estimate && { "point" => estimate.point.round(1), "low" => estimate.low.round(1),
                      "high" => estimate.high.round(1), "level" => estimate.level }
      end
      private_class_method :estimate

      private

      def row(row, timed)
        { "path" => row.path, "line" => row.line, "method" => row.method&.name,
          "own_ns" => (row.own_ns if timed), "gc_ns" => row.gc_ns, "together_ns" => (row.together_ns if timed),
          "objects" => row.objects, "bytes" => row.bytes, "classes" => row.classes }
      end
    end
  end
end
