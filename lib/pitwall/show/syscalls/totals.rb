# frozen_string_literal: true

require "json"
require "pitwall/show/terminal/markdown"
require "pitwall/show/syscalls/words"
require "pitwall/show/terminal/table"

module Pitwall
  module Show
    # How often which system call was made, of recordings that only counted (`pitwall syscalls --count`).
    class SyscallTotals
      # @param totals [Hash{String => Array(Integer, Integer, Integer)}] by name: calls, how many failed, ns
      #: (Hash[String, [Integer, Integer, Integer]], ?warnings: Array[Record::Warning], ?limit: Integer?) -> void
      def initialize(totals, warnings: [], limit: nil)
        @rows = totals.map { |name, counts| [name, *counts] }.sort_by { |name, calls, _, ns| [-calls, -ns, name] }
        @warnings = warnings
        @limit = limit
      end

      #: (?width: Integer, ?palette: untyped) -> String
      def text(width: 100, palette: Plain)
        shown = @rows.first(@limit || @rows.size)
        cells = shown.map { |name, calls, errors, ns| [Units.count(calls), Units.count(errors), Units.duration(ns), name] }
        widths = [0, 1, 2].map { |at| [cells.map { |row| row[at].size }.max.to_i, HEADS[at].size].max }
        lines = [HEADS, *cells].map { |row| [*row.first(3).each_with_index.map { |cell, at| cell.rjust(widths[at]) }, row[3]].join("  ")[0, width].rstrip }
        lines[0] = palette.dim(lines[0])
        [palette.bold(title), *@warnings.map { |warning| "! #{warning.message}" }, "", *lines, "", *Text.wrap(SyscallsWords.unseen("recording"), width).map { |line| palette.dim(line) }].join("\n")
      end

      #: () -> String
      def markdown
        rows = @rows.first(@limit || @rows.size).map { |name, calls, errors, ns| "| #{Units.count(calls)} | #{Units.count(errors)} | #{Units.duration(ns)} | `#{name}` |" }
        [title, *@warnings.map { |warning| "> #{warning.message}" }, "", "| calls | failed | time | call |", "|---:|---:|---:|---|", *rows,
         "", Markdown.text(SyscallsWords.unseen("recording"))].join("\n")
      end

      #: () -> String
      def json
        calls, failed, ns = sums
        JSON.generate("schema" => "pitwall/syscalls-1", "calls" => calls, "failed" => failed, "ns" => ns,
                      "by_call" => @rows.map { |name, count, errors, time| { "name" => name, "calls" => count, "failed" => errors, "ns" => time } },
                      "not_seen" => SyscallsWords::UNSEEN, "warnings" => @warnings.map(&:to_h))
      end

      private

      HEADS = %w[calls failed time call].freeze
      private_constant :HEADS

      def sums = @rows.empty? ? [0, 0, 0] : @rows.map { |row| row.drop(1) }.transpose.map(&:sum)

      def title
        calls, failed, ns = sums
        "#{Units.count(calls)} system calls, counted only · #{Units.count(failed)} failed · #{Units.duration(ns)} in them"
      end
    end
  end
end
