# frozen_string_literal: true

require "pitwall/analyse/findings/evidence"
require "pitwall/analyse/findings/finding"
require "pitwall/analyse/findings/rules"

module Pitwall
  module Analyse
    # What stands out in a recording: at most three findings, the one that costs most time first.
    module Findings
      MOST = 3
      # In this order: of two findings for one line the first counts.
      RULES = [Boot, RepeatedQueries, RepeatedScan, HeavyLine, Lock, Waiting, Garbage, AllocatingLine, Growth, Retained, Route, SlowRequest,
               SlowTest, HeavyMethod].freeze

      #: (Array[Record::Segment], ?selection: Selection, ?origin: Origin) -> Array[Finding]
      def self.of(segments, selection: Selection.all, origin: Origin.new)
        evidence = Evidence.new(segments, selection: selection, origin: origin)
        found = RULES.each_with_object([]) { |rule, all| all.concat(rule.findings(evidence, all)) }
        known = {}
        found.select! { |finding| finding.path.nil? || !known.key?(finding.topic) && (known[finding.topic] = true) }
        found.each_with_index.sort_by { |finding, at| [-finding.impact, at] }.first(MOST).map(&:first)
      end
    end
  end
end
