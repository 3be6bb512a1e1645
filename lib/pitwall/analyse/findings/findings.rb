# frozen_string_literal: true

require "pitwall/analyse/findings/evidence"
require "pitwall/analyse/findings/finding"
require "pitwall/analyse/findings/rules"

module Pitwall
  module Analyse
    # Finds what stands out in a recording: at most three findings, the largest cost in time first.
    module Findings
      MOST = 3
      # Rules. If two findings have the same line and topic, the first counts.
      RULES = [Boot, RepeatedQueries, RepeatedScan, HeavyLine, Lock, Waiting, Garbage, AllocatingLine, Growth,
               Retained, Route, SlowRequest, SlowTest, HeavyMethod].freeze

      # The findings of a recording. There are none where call paths are estimates: each finding is about the line
      # below which time is spent.
      #: (Array[Record::Segment], ?selection: Selection, ?origin: Origin) -> Array[Finding]
      def self.of(segments, selection: Selection.all, origin: Origin.new)
        return [] if segments.any? { |segment| segment.header.estimated_paths? }

        evidence = Evidence.new(segments, selection: selection, origin: origin)
        found = RULES.each_with_object([]) { |rule, all| all.concat(rule.findings(evidence, all)) }
        known = {}
        found.select! { |finding| finding.path.nil? || !known.key?(finding.topic) && (known[finding.topic] = true) }
        found.each_with_index.sort_by { |finding, at| [-finding.impact, at] }.first(MOST).map(&:first)
      end
    end
  end
end
