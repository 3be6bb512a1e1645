# frozen_string_literal: true

require "pitwall/views/next_steps"
require "pitwall/views/report_view"

module Pitwall
  module Views
    # Traced methods with what ruby-prof shows of them.
    class Calls < ReportView
      TIMES = ["wall", "cpu", nil].freeze
      private_constant :TIMES

      #: () -> String
      def name = "calls"

      #: () -> Array[Symbol]
      def refused_filters = %i[time]

      #: () -> String
      def usual_for = "only traced calls"

      # By another weight than times the flat table shows more.
      #: (Recorded, String?) -> bool
      def usual?(recorded, weight) = recorded.traced? && !recorded.sampled? && TIMES.include?(weight)

      #: (Drawing) -> Array[String]
      def lines(drawing)
        text = drawing.methods_text
        text.calls + text.beside + text.next_steps(NextSteps.new(drawing).commands)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "calls" => rows.calls }

      # Programs have read it after the trees since the first version.
      #: () -> Numeric
      def field_place = Views.named("bottom-up").field_place + 0.5

      private

      def check_weight(subject)
        asked = subject.asked.views.include?(self)
        asked ? subject.weighing.check(asked_as: option, calls: true) : super
      end
    end
  end
end
