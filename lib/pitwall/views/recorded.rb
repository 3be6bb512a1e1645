# frozen_string_literal: true

module Pitwall
  module Views
    # What was recorded of some processes.
    Recorded = Struct.new(:segments) do
      #: () -> bool
      def sampled? = segments.any?(&:sampled?)

      #: () -> bool
      def traced? = segments.any?(&:traced?)

      # Were objects followed?
      #: () -> bool
      def followed? = segments.any?(&:allocation_totals)

      #: () -> bool
      def syscalls? = segments.any?(&:syscalls?)

      # Were objects followed, and neither samples nor calls recorded? Then objects are what trees weigh.
      #: () -> bool
      def only_objects? = followed? && !sampled? && !traced?

      # What trees and tables weigh where no weight is asked for: wall time. An imported profile may have none.
      #: () -> Symbol
      def usual_weight
        return :objects if only_objects?
        return :wall if segments.none? { |segment| segment.header.imported }

        found = Analyse::CallTreeBuilder.build(segments, weights: %i[wall cpu captures calls objects])
        found.weights.find { |weight| found.total(weight).positive? } || :wall
      end
    end
  end
end
