# frozen_string_literal: true

require "json"
require "pitwall/show/compare/json"
require "pitwall/show/compare/proof_trailers"

module Pitwall
  module Show
    # A comparison as a proof in JSON: what `pitwall compare --format json` has, with what repeats the comparison.
    class ProofJson
      SCHEMA = "pitwall/prove-1"

      # @param repeat see {ProofTrailers}; nil where the comparison is not of two trees alone
      #: (Analyse::ComparisonReport, Hash[String, untyped]?, version: String?) -> void
      def initialize(report, repeat, version:)
        @report = report
        @repeat = repeat.to_h
        @version = version
      end

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s
        base, tree = @repeat["trees"]
        environment = ProofTrailers.environment(@report, @version)
        body = CompareJson.new(@report).body.merge("schema" => SCHEMA)
        body["proof"] = { "base" => base, "tree" => tree, "benchmark" => @repeat["benchmark"],
                          "environment" => environment, "command" => @repeat.fetch("command", @report.command),
                          "pitwall" => @version }
        JSON.generate(JsonValues.clean(body))
      end
    end
  end
end
