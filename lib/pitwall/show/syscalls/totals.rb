# frozen_string_literal: true

require "json"
require "pitwall/show/terminal/markdown"
require "pitwall/show/syscalls/words"
require "pitwall/show/terminal/table"

module Pitwall
  module Show
    # The number of each system call, in recordings that only counted calls (`pitwall syscalls --count`).
    class SyscallTotals
      # @param totals [Hash{String => Array(Integer, Integer, Integer)}] name of a call → number of calls, number of
      #   failed calls, ns
      # @param limit [Integer, nil] rows of the table; nil: all
      #: (Hash[String, [Integer, Integer, Integer]], ?warnings: Array[Record::Warning], ?limit: Integer?) -> void
      def initialize(totals, warnings: [], limit: nil)
        @rows = totals.map { |name, counts| [name, *counts] }.sort_by { |name, calls, _, ns| [-calls, -ns, name] }
        @warnings = warnings
        @limit = limit
      end

      # The report as text.
      #: (?width: Integer, ?palette: untyped) -> String
      def text(width: 100, palette: Plain)
        shown = @rows.first(@limit || @rows.size)
        cells = shown.map do |name, calls, errors, ns|
          [Units.count(calls), Units.count(errors), Units.duration(ns), name]
        end
        widths = [0, 1, 2].map { |at| [cells.map { |row| row[at].size }.max.to_i, HEADS[at].size].max }
        lines = [HEADS, *cells].map do |row|
          [*row.first(3).each_with_index.map { |cell, at| cell.rjust(widths[at]) }, row[3]].join("  ")[0, width].rstrip
        end
        lines[0] = palette.dim(lines[0])
        unseen = Text.wrap(SyscallsWords.unseen("recording"), width).map { |line| palette.dim(line) }
        warnings = @warnings.map { |warning| "! #{warning.message}" }
        [palette.bold(title), *warnings, "", *lines, "", *unseen].join("\n")
      end

      # The report as Markdown.
      #: () -> String
      def markdown
        rows = @rows.first(@limit || @rows.size).map do |name, calls, errors, ns|
          "| #{Units.count(calls)} | #{Units.count(errors)} | #{Units.duration(ns)} | `#{name}` |"
        end
        [title, *@warnings.map { |warning| "> #{warning.message}" }, "",
         "| calls | failed | time | call |", "|---:|---:|---:|---|", *rows,
         "", Markdown.text(SyscallsWords.unseen("recording"))].join("\n")
      end

      # The report as JSON text.
      #: () -> String
      def json
        calls, failed, ns = sums
        by_call = @rows.map do |name, count, errors, time|
          { "name" => name, "calls" => count, "failed" => errors, "ns" => time }
        end
        JSON.generate("schema" => "pitwall/syscalls-1", "calls" => calls, "failed" => failed, "ns" => ns,
                      "by_call" => by_call, "not_seen" => SyscallsWords::UNSEEN, "warnings" => @warnings.map(&:to_h))
      end

      private

      HEADS = %w[calls failed time call].freeze
      private_constant :HEADS

      def sums = @rows.empty? ? [0, 0, 0] : @rows.map { |row| row.drop(1) }.transpose.map(&:sum)

      def title
        calls, failed, ns = sums
        "#{Units.count(calls)} system calls, counted only · #{Units.count(failed)} failed · " \
          "#{Units.duration(ns)} in them"
      end
    end
  end
end
