# frozen_string_literal: true

require "pitwall/show/compare/markdown"
require "pitwall/show/compare/proof_trailers"

module Pitwall
  module Show
    # A comparison as a proof in Markdown, for a pull request: the comparison's Markdown with the trees that were
    # measured, and a command that measures the same trees again.
    class ProofMarkdown
      DIGITS = 12 # of a tree's id
      private_constant :DIGITS

      # @param repeat see {ProofTrailers}; nil where the comparison is not of two trees alone
      #: (Analyse::ComparisonReport, Hash[String, untyped]?, version: String?, hints: untyped) -> void
      def initialize(report, repeat, version:, hints:)
        @report = report
        @repeat = repeat.to_h
        @version = version
        @hints = hints
      end

      # The text, without a newline at its end.
      #: () -> String
      def to_s
        report = @report.dup.tap { |copy| copy.command = @repeat.fetch("command", @report.command) }
        [CompareMarkdown.new(report, hints: @hints).to_s, made].join("\n\n")
      end

      private

      def made
        rows = { "trees" => trees, "benchmark" => benchmark, "made with" => environment }.compact
        rows.map { |name, text| "- #{name}: #{text}" }.join("\n")
      end

      def trees
        names = @report.sides.map { |side| Markdown.text(side.name) }
        @repeat["trees"]&.zip(names)&.map { |tree, name| "#{Markdown.code(tree[0, DIGITS])} (#{name})" }&.join(" → ")
      end

      def benchmark
        file = @repeat["benchmark"] or return
        "#{Markdown.code(file["path"])}, content #{Markdown.code(file["blob"].to_s[0, DIGITS])}"
      end

      def environment = Markdown.text(ProofTrailers.environment(@report, @version))
    end
  end
end
