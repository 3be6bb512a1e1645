# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Strings that stay what they are in Markdown, also inside a table's cell.
    module Markdown
      module_function

      #: (String) -> String
      def text(string) = Text.safe(string).gsub(/[\\`*_<>|\[\]#~&@]/) { |char| ENTITIES.fetch(char) { "\\#{char}" } }

      # What a backslash doesn't quiet: a mention notifies people.
      ENTITIES = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", "@" => "&#64;" }.freeze
      private_constant :ENTITIES

      # A code span with as many backticks as its content needs; a bar would end the cell.
      #: (String) -> String
      def code(string)
        return "" if string.empty?

        string = Text.safe(string).gsub("|", "\\|")
        fence = "`" * ((string.scan(/`+/).map(&:size).max || 0) + 1)
        fence.size > 1 || string.match?(/\A[ `]|[ `]\z/) ? "#{fence} #{string} #{fence}" : "`#{string}`"
      end

      # A block of code, which nothing inside can end.
      #: (Array[String], ?language: String) -> Array[String]
      def block(lines, language: "")
        fence = "`" * [3, *lines.flat_map { |line| line.scan(/`+/).map { |run| run.size + 1 } }].max
        ["#{fence}#{language}", *lines, fence]
      end

      # Cells that are Markdown already.
      # @param left [Array<Integer>] columns of words
      #: (Array[String], Array[Array[String]], ?left: Array[Integer]) -> Array[String]
      def table(heads, rows, left: [0])
        rule = heads.each_index.map { |at| left.include?(at) ? "---" : "---:" }
        ["| #{heads.join(" | ")} |", "|#{rule.join("|")}|", *rows.map { |row| "| #{row.join(" | ")} |" }]
      end

      # What stands out, each with its two commands.
      # @param findings [Array<Hash>] as FindingWords#to_h gives them
      #: (Array[Hash[String, untyped]]) -> Array[String]
      def findings(findings)
        lines = findings.flat_map { |finding| ["- **#{text(finding["text"])}**", "  more: #{code(finding["more"])}#{", proof of a fix: #{code(finding["proof"])}" if finding["proof"]}"] }
        lines.empty? ? [] : [*lines, ""]
      end

      # What is shown on request.
      #: (String, Array[String]) -> Array[String]
      def details(summary, lines) = lines.empty? ? [] : ["<details><summary>#{text(summary)}</summary>", "", *lines, "", "</details>"]
    end
  end
end
