# frozen_string_literal: true

require "pitwall/show/compare/proof_trailers"
require "pitwall/show/measured/effect_words"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # A comparison as a JUnit file, which forges show beside a project's tests: a test case for each case and metric.
    # A side that is worse is a failure, an undecided effect is skipped.
    class ProofJunit
      # Characters that XML can't hold, beside the control characters that {Text.safe} escapes.
      INVALID = /[\u{fffe}\u{ffff}]/.freeze
      private_constant :INVALID

      # @param repeat see {ProofTrailers}; nil where the comparison is not of two trees alone
      #: (Analyse::ComparisonReport, Hash[String, untyped]?, version: String?) -> void
      def initialize(report, repeat, version:)
        @report = report
        @repeat = repeat.to_h
        @version = version
      end

      # The text, without a newline at its end.
      #: () -> String
      def to_s
        tests = ProofTrailers.claimed(@report)
        words = tests.map { |effect| EffectWords.verdict(effect) }
        counts = { "tests" => tests.size, "failures" => tests.count { |effect| failed?(effect) }, "errors" => 0,
                   "skipped" => words.count(:undecided), "time" => seconds }
        ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
         "<testsuites>", "  #{tag("testsuite", "name" => "pitwall compare", **counts)}>",
         "    <properties>", *properties, "    </properties>", *tests.flat_map { |effect| test(effect) },
         "  </testsuite>", "</testsuites>"].join("\n")
      end

      private

      def seconds = format("%.3f", @report.duration_ns.to_i / 1e9)

      def failed?(effect) = %i[slower more].include?(EffectWords.verdict(effect)) && !effect.below_margin

      def properties
        base, tree = @repeat["trees"]
        rows = { "base" => @report.sides.first&.name, "base.tree" => base, "side.tree" => tree,
                 "benchmark" => @repeat["benchmark"]&.values_at("path", "blob")&.join(" "),
                 "environment" => ProofTrailers.environment(@report, @version),
                 "command" => @repeat.fetch("command", @report.command) }
        rows.compact.map { |name, value| "      #{tag("property", "name" => name, "value" => value)}/>" }
      end

      def test(effect)
        names = { "classname" => effect.side, "name" => "#{effect.name}: #{EffectWords.title(effect.metric)}" }
        inner = inner(effect, EffectWords.sentence(effect).join(": "))
        ["    #{tag("testcase", names)}>", "      #{inner}", "    </testcase>"]
      end

      def inner(effect, text)
        return "#{tag("failure", "message" => text, "type" => EffectWords.verdict(effect))}/>" if failed?(effect)
        return "#{tag("skipped", "message" => effect.reason || text)}/>" if EffectWords.verdict(effect) == :undecided

        "<system-out>#{clean(text).encode(xml: :text)}</system-out>"
      end

      def tag(name, attributes)
        ["<#{name}", *attributes.map { |key, value| "#{key}=#{clean(value).encode(xml: :attr)}" }].join(" ")
      end

      def clean(value) = Text.line(value.to_s).gsub(INVALID, "?")
    end
  end
end
