# frozen_string_literal: true

require "pitwall/views/next_steps"
require "pitwall/views/report_view"

module Pitwall
  module Views
    # Methods by self weight: a table for people, all methods in JSON, a table for pull requests.
    class Flat < ReportView
      #: () -> String
      def name = "flat"

      #: () -> String
      def usual_for = "samples"

      #: (Recorded, String?) -> bool
      def usual?(recorded, _weight) = recorded.sampled?

      #: () -> Array[String]
      def formats = %w[text json markdown]

      #: () -> bool
      def weighs? = true

      #: (Drawing) -> Array[String]
      def lines(drawing)
        text = drawing.methods_text
        text.flat + text.beside + text.next_steps(NextSteps.new(drawing).commands)
      end

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("methods", "Methods", place: 30)]
    end
  end
end
