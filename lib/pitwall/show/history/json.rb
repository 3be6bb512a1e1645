# frozen_string_literal: true

require "json"
require "pitwall/show/measured/json_values"

module Pitwall
  module Show
    # A project's series with their results and changes as a JSON object.
    class HistoryJson
      SCHEMA = "pitwall/history-1"

      #: (Array[Analyse::ResultSeries], project: String) -> void
      def initialize(found, project:)
        @found = found
        @project = project
      end

      #: () -> String
      def to_s
        series = @found.map do |one|
          { "series" => one.series, "results" => one.points,
            "changes" => one.changes.map { |change| change.merge(worse: one.worse?(change)) } }
        end
        JSON.generate(JsonValues.clean({ "schema" => SCHEMA, "project" => @project, "series" => series }))
      end
    end
  end
end
