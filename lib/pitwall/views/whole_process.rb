# frozen_string_literal: true

require "pitwall/views/view"

module Pitwall
  module Views
    # A view that has all of a process, whatever thread, time or request it was in. It is a document of its own in
    # every format.
    class WholeProcess < View
      # Keys of options that such a view has no use for.
      REFUSED = %i[thread state labels request weight blackbox gc threshold apart].freeze

      #: () -> Array[String]
      def formats = %w[text json markdown]

      # @raise [UsageError]
      #: (Subject) -> String
      def draw(subject)
        check_options(subject.asked)
        check(subject)
        super
      end

      private

      def check_options(asked)
        super
        odd = REFUSED.find { |key| asked[key] } or return

        raise UsageError, "#{Views.option_name(odd)}: the view of #{name} has all of a process: " \
                          "leave it out, or ask for another --view"
      end

      def messages(subject) = subject.warnings.map(&:message)

      # What all texts of such views take.
      def text_options(subject)
        { **subject.screen.to_h.slice(:width, :palette), base: subject.application.base, warnings: messages(subject),
          hints: Hints }
      end
    end
  end
end
