# frozen_string_literal: true

module Pitwall
  module Views
    # Of views of the garbage collector's runs, which belong to no request or label.
    module OfCollections
      #: () -> bool
      def of_request? = false

      #: () -> bool
      def without_weight? = true

      private

      # @raise [UsageError]
      def check_needs(subject)
        super
        return unless subject.asked[:labels]

        raise UsageError, "--label: collections are of the whole process: leave it out, " \
                          "or see (marking) and (sweeping) below what ran under the label in --tree"
      end
    end
  end
end
