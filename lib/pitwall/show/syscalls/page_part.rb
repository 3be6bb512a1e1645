# frozen_string_literal: true

require "pitwall/analyse/syscalls/path_tree"
require "pitwall/show/syscalls/json"
require "pitwall/show/syscalls/view"

module Pitwall
  module Show
    # System calls as a page has them: what the JSON view says, a tree of paths and one of Ruby stacks.
    class SyscallsPart < SyscallsView
      # Places of a pattern; columns of a place's text.
      PLACES = 30
      WIDE = 300
      TREE = %i[calls ns explained paths].freeze
      KINDS = { path: 0, others: 1, none: 2 }.freeze
      private_constant :PLACES, :WIDE, :TREE, :KINDS

      # Of recordings in which calls were only counted.
      #: (Hash[String, [Integer, Integer, Integer]]) -> Hash[String, untyped]
      def self.of_totals(totals)
        rows = totals.map { |name, (calls, failed, ns)| { "call" => SyscallsWords.path(name), "calls" => calls, "failed" => failed, "ns" => ns } }
        calls, failed, ns = %w[calls failed ns].map { |key| rows.sum { |row| row[key] } }
        { "calls" => calls, "failed" => failed, "ns" => ns, "words" => "#{Units.things(calls, "call")}, counted only: pitwall syscalls without --count has paths and Ruby lines",
          "by_call" => rows, "passes" => [], "notes" => [], "warnings" => [], "unseen" => SyscallsWords.unseen("recording") }
      end

      # @return [Array<String>] what the report is of, and its sums
      #: () -> Array[String]
      def title = heading

      # @param shifts [Hash{Record::Segment => Integer}] what to add to a segment's nodes for those of the page
      #: (PageData, ?shifts: Hash[Record::Segment, Integer]) -> Hash[String, untyped]
      def object(data, shifts: {})
        value = SyscallsJson.new(report: @report, name: @name, format: @format, file: "", limit: PLACES).value
        whole = value.slice("calls", "explained", "unexplained", "failed", "ns", "by_call", "findings", "notes")
        whole["unseen"] = SyscallsWords.unseen(@format)
        whole["by_call"] = value["by_call"].map { |row| row.merge("call" => SyscallsWords.path(row["call"])) }
        whole.merge("words" => SyscallsWords.explained(@report), "passes" => value["passes"].map { |pass| pass(pass) },
                    "warnings" => @warnings.map { |warning| SyscallsWords.path(warning.message) }, "paths" => paths(data), "stacks" => (stacks(data, shifts) if stacks?))
      end

      private

      # Whether any call came with more than the root: recordings without stacks have that alone.
      def stacks?
        return @stacks if defined?(@stacks)

        @report.each_node { |_, node| return @stacks = true if node.positive? }
        @stacks = false
      end

      def pass(pass)
        pass.merge("average" => pass["average"]&.round(1), "groups" => pass["groups"].map { |row| row.merge("path" => fit(row["path"])) },
                   "lines" => (stacks? ? pass["lines"].first(PLACES) : []).map { |row| row.merge("path" => fit(SyscallsWords.path(row["path"]))) })
      end

      def fit(text) = Text.shorten_left(text, WIDE)

      def paths(data)
        tree = @report.path_tree
        columns = { "up" => data.column(tree.nodes.each_with_index.map { |node, at| at + 1 - node.parent }), "kind" => data.column(tree.nodes.map { |node| KINDS.fetch(node.kind) }) }
        TREE.each { |name| columns[name.to_s] = data.column(tree.nodes.map { |node| node[name] }) }
        columns.merge("name" => tree.nodes.map { |node| fit(SyscallsWords.path(node.name)) }, "merged" => tree.merged)
      end

      def stacks(data, shifts)
        sums = Hash.new { |known, node| known[node] = [0, 0, 0] }
        @report.each_node do |segment, node, *more|
          at = node.zero? || !shifts.key?(segment) ? 0 : node + shifts[segment]
          more.each_with_index { |sum, index| sums[at][index] += sum }
        end
        rows = sums.sort
        { "node" => data.column(rows.map(&:first)), **%w[calls ns explained].each_with_index.to_h { |name, at| [name, data.column(rows.map { |_, row| row[at] })] } }
      end
    end
  end
end
