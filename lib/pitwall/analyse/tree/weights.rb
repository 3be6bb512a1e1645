# frozen_string_literal: true

require "pitwall/analyse/allocations/allocations"
require "pitwall/analyse/recording/selection"

module Pitwall
  module Analyse
    # The weights that a part of a recording has.
    module Weights
      # Weights of samples, and so of time lines.
      SAMPLED = %i[wall cpu captures].freeze
      # All weights, in the order of profiles with several weights: counts before times.
      ALL = %i[captures calls cpu wall wait objects bytes retained retained_bytes gc].freeze

      # The weights of these segments and this selection.
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

      # Whether there are allocation sites. Sites have no thread or state, so a selection of these has no sites.
      #: (Array[Record::Segment], Selection) -> bool
      def self.sited?(segments, selection) = selection.every_thread? && segments.any? { |segment| segment.sites.any? }

      def self.of_objects(segments)
        allocations = Allocations.new(segments)
        weights = %i[objects bytes gc]
        weights << :retained if allocations.retained?
        weights << :retained_bytes if allocations.retained_bytes?
        weights
      end
      private_class_method :of_objects
    end
  end
end
