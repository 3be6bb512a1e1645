# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/show"

module Pitwall
  module CLI
    # The report of `bench` or `compare` in the format that was asked for.
    module MeasuredView
      # What an option may ask for; text where it doesn't.
      FORMATS = %w[text json markdown html].freeze

      module_function

      # @param look how text is shown: width, palette, unicode
      # @param details of a comparison's text: all of it
      #: ((Analyse::BenchReport | Analyse::ComparisonReport), String?, ?details: bool, **untyped) -> String
      def render(report, format, details: true, **look)
        kind = report.is_a?(Analyse::ComparisonReport) ? "Compare" : "Bench"
        look[:details] = details if kind == "Compare"
        case format
        when "json" then Show.const_get("#{kind}Json").new(report).to_s
        when "html" then Show::MeasuredPage.new(report).to_s
        when "markdown" then Show.const_get("#{kind}Markdown").new(report).to_s
        else Show.const_get("#{kind}Text").new(report, **look).to_s
        end
      end
    end
  end
end
