# frozen_string_literal: true

require "pitwall/show/terminal/location"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The flat table for pull requests and issues.
    class MarkdownReport
      #: (Analyse::Report, ?warnings: Array[String], ?limit: Integer, ?base: String?, ?findings: Array[untyped]) -> void
      def initialize(report, warnings: [], limit: 20, base: nil, findings: [])
        @report = report
        @warnings = warnings
        @limit = limit
        @location = Location.new(base)
        @findings = findings
      end

      #: () -> String
      def to_s
        [headline, "", *Markdown.findings(@findings), *notes, *table, *rest].join("\n")
      end

      private

      def weighty = @report.running.flat.reject { |row| row.total.zero? }

      def headline
        summary = @report.summary
        parts = ["**#{text(summary.programs.join(", "))}**", text(summary.rubies.join(", ")),
                 "#{Units.duration(summary.elapsed_ns)} wall",
                 "#{Units.duration(summary.stat("process_cpu_ns"))} CPU", *counted(summary)]
        parts.reject { |part| part.empty? || part == "****" }.join(" · ")
      end

      # Calls, samples or both.
      def counted(summary)
        sampled = !summary.traced? || summary.segments.any?(&:sampled?)
        [*(Units.things(summary.calls, "call") if summary.traced?),
         *([Units.things(summary.stat("captures"), "sample"),
            "#{Units.count(summary.stat("dropped"))} dropped"] if sampled)]
      end

      def notes
        idle = @report.left_out
        idle = idle.empty? ? [] : ["idle threads left out: #{idle.join(", ")}"]
        waiting = @report.waiting
        unless @report.running.equal?(@report)
          idle << "waiting: #{Units.duration(waiting.total)} of #{Units.duration(waiting.all)}; " \
                  "the table is of the time in which threads ran"
        end
        notes = (@warnings + @report.summary.notes + idle).map { |note| "> #{text(note)}" }
        notes.empty? ? [] : notes.flat_map { |note| [note, ">"] }[0..-2] + [""]
      end

      def table
        weight = @report.weight
        also = @report.second_weight
        heads = ["self", weight.to_s, "total", "total #{weight}", *(also && ["self #{also}"]), *("calls" if calls?)]
        lines = ["| #{(heads + %w[method where]).join(" | ")} |", "|#{"---:|" * heads.size}---|---|"]
        lines + weighty.first(@limit).map do |row|
          numbers = [Units.percent(row.own, @report.running.total), Units.value(row.own, weight),
                     Units.percent(row.total, @report.running.total),
                     Units.value(row.total, weight)]
          numbers << Units.value(row.also.fetch(also), also) if also
          numbers << Units.count(row.also.fetch(:calls)) if calls?
          where = @location.text(row.method.path, row.method.line)
          "| #{numbers.join(" | ")} | #{code(row.method.name)} | #{code(where)} |"
        end
      end

      # Beside other weights.
      def calls? = @report.summary.traced? && @report.weight != :calls

      def rest
        rows = weighty.drop(@limit)
        return [] if rows.empty?

        ["", "#{Units.percent(rows.sum(&:own), @report.running.total)} in #{Units.things(rows.size, "more method")}."]
      end

      # A code span with as many backticks as its content needs; a bar would end the cell.
      def code(name)
        return "" if name.empty?

        name = Text.safe(name).gsub("|", "\\|")
        fence = "`" * ((name.scan(/`+/).map(&:size).max || 0) + 1)
        fence.size > 1 ? "#{fence} #{name} #{fence}" : "`#{name}`"
      end

      def text(string) = Text.safe(string).gsub(/[\\`*_<>|\[\]#]/) { |char| "\\#{char}" }
    end
  end
end
