# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/show"
require "pitwall/views/hints"

module Pitwall
  module CLI
    # Renders the report of `bench` or `compare` in a format.
    module MeasuredView
      # Values of --format; the default is text.
      FORMATS = %w[text json markdown html].freeze

      module_function

      # The report in a format; nil means text.
      # @param details whether a comparison's text has all details
      # @param text_options options of the text view: width, palette, unicode
      #: ((Analyse::BenchReport | Analyse::ComparisonReport), String?, ?details: bool, **untyped) -> String
      def render(report, format, details: true, **text_options)
        kind = report.is_a?(Analyse::ComparisonReport) ? "Compare" : "Bench"
        hints = kind == "Compare" ? { hints: Views::Hints } : {}
        text_options[:details] = details if kind == "Compare"
        case format
        when "json" then Show.const_get("#{kind}Json").new(report).to_s
        when "html" then Show::MeasuredPage.new(report, hints: Views::Hints).to_s
        when "markdown" then Show.const_get("#{kind}Markdown").new(report, **hints).to_s
        else Show.const_get("#{kind}Text").new(report, **hints, **text_options).to_s
        end
      end
    end
  end
end
