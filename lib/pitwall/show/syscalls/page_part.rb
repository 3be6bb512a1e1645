# frozen_string_literal: true

require "pitwall/analyse/syscalls/path_tree"
require "pitwall/show/syscalls/json"
require "pitwall/show/syscalls/view"

module Pitwall
  module Show
    # The system calls in a page: the JSON view's data, a tree of paths and a tree of Ruby stacks.
    class SyscallsPart < SyscallsView
      PLACES = 30 # places of a pattern, at most
      WIDE = 300 # characters of a place's text, at most
      TREE = %i[calls ns explained paths].freeze
      KINDS = { path: 0, others: 1, none: 2 }.freeze
      private_constant :PLACES, :WIDE, :TREE, :KINDS

      # The object for recordings that only counted calls (--count).
      # @param totals name of a call → number of calls, number of failed calls, ns
      # @param hints [Views::Hints] options that notes suggest
      #: (Hash[String, [Integer, Integer, Integer]], hints: untyped) -> Hash[String, untyped]
      def self.of_totals(totals, hints:)
        rows = totals.map do |name, (calls, failed, ns)|
          { "call" => SyscallsWords.path(name), "calls" => calls, "failed" => failed, "ns" => ns }
        end
        calls, failed, ns = %w[calls failed ns].map { |key| rows.sum { |row| row[key] } }
        words = "#{Units.things(calls, "call")}, counted only: #{hints.uncounted}"
        { "calls" => calls, "failed" => failed, "ns" => ns, "words" => words, "by_call" => rows, "passes" => [],
          "notes" => [], "warnings" => [], "unseen" => SyscallsWords.unseen("recording") }
      end

      # The name of the log or program, and the sums.
      #: () -> Array[String]
      def title = heading

      # The object for the page's data.
      # @param shifts [Hash{Record::Segment => Integer}] for each segment: number of a node in the page minus its number
      #   in the segment
      #: (PageData, ?shifts: Hash[Record::Segment, Integer]) -> Hash[String, untyped]
      def object(data, shifts: {})
        value = SyscallsJson.new(report: @report, name: @name, format: @format, hints: @hints, limit: PLACES).value
        whole = value.slice("calls", "explained", "unexplained", "failed", "ns", "by_call", "findings", "notes")
        whole["unseen"] = SyscallsWords.unseen(@format)
        whole["by_call"] = value["by_call"].map { |row| row.merge("call" => SyscallsWords.path(row["call"])) }
        whole.merge("words" => SyscallsWords.explained(@report), "passes" => value["passes"].map { |pass| pass(pass) },
                    "warnings" => @warnings.map { |warning| SyscallsWords.path(warning.message) },
                    "paths" => paths(data), "stacks" => (stacks(data, shifts) if stacks?))
      end

      private

      # Whether the recording has stacks. Without stacks all calls are at the root, node 0.
      def stacks?
        return @stacks if defined?(@stacks)

        @report.each_node { |_, node| return @stacks = true if node.positive? }
        @stacks = false
      end

      def pass(pass)
        lines = stacks? ? pass["lines"].first(PLACES) : []
        pass.merge("average" => pass["average"]&.round(1),
                   "groups" => pass["groups"].map { |row| row.merge("path" => fit(row["path"])) },
                   "lines" => lines.map { |row| row.merge("path" => fit(SyscallsWords.path(row["path"]))) })
      end

      def fit(text) = Text.shorten_left(text, WIDE)

      def paths(data)
        tree = @report.path_tree
        columns = { "up" => data.column(tree.nodes.each_with_index.map { |node, at| at + 1 - node.parent }),
                    "kind" => data.column(tree.nodes.map { |node| KINDS.fetch(node.kind) }) }
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
        columns = { "node" => data.column(rows.map(&:first)) }
        %w[calls ns explained].each_with_index { |name, at| columns[name] = data.column(rows.map { |_, row| row[at] }) }
        columns
      end
    end
  end
end
