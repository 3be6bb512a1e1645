# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Escapes text for Markdown, also for a table's cell.
    module Markdown
      module_function

      # Plain text, with Markdown's signs escaped.
      #: (String) -> String
      def text(string) = Text.safe(string).gsub(/[\\`*_<>|\[\]#~&@]/) { |char| ENTITIES.fetch(char) { "\\#{char}" } }

      # Signs that a backslash doesn't escape. An unescaped "@name" would notify a person.
      ENTITIES = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", "@" => "&#64;" }.freeze
      private_constant :ENTITIES

      # A code span with as many backticks as its content needs. Bars are escaped: a bar would end a table's cell.
      #: (String) -> String
      def code(string)
        return "" if string.empty?

        string = Text.safe(string).gsub("|", "\\|")
        fence = "`" * ((string.scan(/`+/).map(&:size).max || 0) + 1)
        fence.size > 1 || string.match?(/\A[ `]|[ `]\z/) ? "#{fence} #{string} #{fence}" : "`#{string}`"
      end

      # A block of code. Its fence is longer than every run of backticks in the lines.
      #: (Array[String], ?language: String) -> Array[String]
      def block(lines, language: "")
        fence = "`" * [3, *lines.flat_map { |line| line.scan(/`+/).map { |run| run.size + 1 } }].max
        ["#{fence}#{language}", *lines, fence]
      end

      # A table. Heads and cells must be Markdown already.
      # @param left [Array<Integer>] indexes of left-aligned columns (words)
      #: (Array[String], Array[Array[String]], ?left: Array[Integer]) -> Array[String]
      def table(heads, rows, left: [0])
        rule = heads.each_index.map { |at| left.include?(at) ? "---" : "---:" }
        ["| #{heads.join(" | ")} |", "|#{rule.join("|")}|", *rows.map { |row| "| #{row.join(" | ")} |" }]
      end

      # The findings, each with its two commands.
      # @param findings [Array<Hash>] objects that FindingWords#to_h returns
      #: (Array[Hash[String, untyped]]) -> Array[String]
      def findings(findings)
        lines = findings.flat_map do |finding|
          proof = ", proof of a fix: #{code(finding["proof"])}" if finding["proof"]
          ["- **#{text(finding["text"])}**", "  more: #{code(finding["more"])}#{proof}"]
        end
        lines.empty? ? [] : [*lines, ""]
      end

      # A section that is folded until the reader opens it; nothing without lines.
      #: (String, Array[String]) -> Array[String]
      def details(summary, lines)
        return [] if lines.empty?

        ["<details><summary>#{text(summary)}</summary>", "", *lines, "", "</details>"]
      end
    end
  end
end
