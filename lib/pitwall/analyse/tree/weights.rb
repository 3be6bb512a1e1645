# frozen_string_literal: true

require "pitwall/analyse/allocations/allocations"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # What a part of a recording can be weighed by.
    module Weights
      # What samples, and so time lines, have.
      SAMPLED = %i[wall cpu captures].freeze
      # All there are, in the order that profiles of several weights have them: counts before times.
      ALL = %i[captures calls cpu wall wait objects bytes retained retained_bytes gc].freeze

      # @return [Array<Symbol>] in the order of ALL
      #: (Array[Record::Segment], ?Selection) -> Array[Symbol]
      def self.of(segments, selection = Selection.all)
        segments = segments.select { |segment| selection.segment?(segment) }
        found = segments.any? { |segment| segment.tallies.any? } ? SAMPLED.dup : []
        traced = segments.select { |segment| segment.calls.any? }
        found.push(:calls, :wall, :wait) if traced.any?
        found.concat(%i[cpu objects bytes].select { |weight| traced.any? { |segment| segment.tracing[weight.to_s] } })
        found.concat(of_objects(segments)) if sited?(segments, selection)
        ALL & found
      end

      # Whether objects were followed and the selection leaves them: a thread's or a state's are not told apart.
      #: (Array[Record::Segment], Selection) -> bool
      def self.sited?(segments, selection) = selection.every_thread? && segments.any? { |segment| segment.sites.any? }

      def self.of_objects(segments)
        allocations = Allocations.new(segments)
        [:objects, :bytes, :gc, *(:retained if allocations.retained?), *(:retained_bytes if allocations.retained_bytes?)]
      end
      private_class_method :of_objects
    end
  end
end
