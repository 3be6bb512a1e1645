# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/views/recorded"

module Pitwall
  module Views
    # Whether what was recorded has a weight.
    class Weighing
      OF_CALLS = %i[calls wait].freeze
      OF_OBJECTS = %i[objects bytes gc].freeze
      # What a trace may leave out.
      COUNTED = %i[cpu objects bytes].freeze
      private_constant :OF_CALLS, :OF_OBJECTS, :COUNTED

      # @param weight [Symbol] e.g. :cpu
      #: (Symbol, Analyse::Summary) -> void
      def initialize(weight, summary)
        @weight = weight
        @summary = summary
        @recorded = Recorded.new(summary.segments)
      end

      # @param asked_as [String] what asks for the weight, as one types it
      # @param calls [Boolean] are calls needed, whatever the weight?
      # @raise [UsageError]
      #: (?asked_as: String, ?calls: bool) -> void
      def check(asked_as: "--weight #{@weight}", calls: false)
        if !@recorded.traced? && (calls || OF_CALLS.include?(@weight))
          raise UsageError, "#{asked_as}: the recording has no calls; pitwall trace -- CMD counts them"
        elsif !@recorded.followed? && (@weight == :gc || (!@recorded.traced? && OF_OBJECTS.include?(@weight)))
          raise UsageError, "#{asked_as}: no objects were followed in this recording; " \
                            "pitwall allocations -- CMD does that"
        end
      end

      # Are there only traced calls to weigh?
      #: () -> bool
      def of_calls? = @recorded.traced? && !@recorded.sampled? && !of_objects?

      # @raise [UsageError] the trace left the weight out
      #: () -> void
      def check_traced
        return unless of_calls? && COUNTED.include?(@weight) && !@summary.traced_with?(@weight.to_s)

        mend = @weight == :bytes ? "pitwall trace --bytes -- CMD counts them" : "record without --no-#{@weight}"
        raise UsageError, "--weight #{@weight}: this trace has none; #{mend}"
      end

      private

      def of_objects? = @recorded.followed? && OF_OBJECTS.include?(@weight)
    end
  end
end
