# frozen_string_literal: true

module Pitwall
  module Views
    # Of views of a report whose rows are not told by thread and state.
    module ProcessWide
      private

      # @raise [UsageError]
      def check_needs(subject)
        super
        odd = %i[thread state].find { |key| subject.asked[key] } or return

        raise UsageError, "#{Views.option_name(odd)}: #{name} are not told by thread and state: " \
                          "leave it out, or see --view labels"
      end
    end
  end
end
