# frozen_string_literal: true

require "pitwall/show/terminal/markdown"
require "pitwall/show/syscalls/view"

module Pitwall
  module Show
    # System calls as Markdown, for pull requests and issues.
    class SyscallsMarkdown < SyscallsView
      TOP = 10 # rows of a table, by default
      private_constant :TOP

      # The change between two logs as Markdown.
      # @param before [Hash] the first log, see SyscallsChange
      # @param after [Hash] the second log
      #: (Hash[Symbol, untyped], Hash[Symbol, untyped], ?limit: Integer?) -> String
      def self.change(before, after, limit: nil)
        change = Analyse::SyscallChange.new(before[:report], after[:report])
        calls = change.totals.first
        cells = lambda do |row|
          [Markdown.code(SyscallsWords.path(row.name)), Units.count(row.before), Units.count(row.after),
           SyscallsChange.signed(row.change)]
        end
        warnings = [before, after].flat_map { |side| side[:warnings] }
        warnings = warnings.map { |warning| "> #{Markdown.text(SyscallsWords.path(warning.message))}" }
        both = "#{Units.count(calls.before)} → #{Units.count(calls.after)}"
        by_call = change.by_call.first(limit || TOP)
        ["**#{both} file-system calls** (#{SyscallsChange.percent(calls)})", "", *warnings, *("" if warnings.any?),
         *Markdown.table(["pattern", "calls before", "after", "change"], change.passes.map(&cells)), "",
         *Markdown.table(["call", "before", "after", "change"], by_call.map(&cells))].join("\n")
      end

      #: (?limit: Integer?, **untyped) -> void
      def initialize(limit: nil, **shared)
        super(limit: limit || TOP, **shared)
        @location = Location.new(@base)
      end

      # The report as Markdown.
      #: () -> String
      def to_s
        parts = @report.calls.zero? ? [title, notes, unseen] : [title, notes, passes, findings, lines, unseen]
        parts.reject(&:empty?).map { |part| part.join("\n") }.join("\n\n")
      end

      private

      def title
        name, *rest = heading
        ["**#{Markdown.text(name)}** · #{rest.map { |text| Markdown.text(text) }.join(" · ")}",
         *(["", "#{Markdown.text(SyscallsWords.explained(@report))}."] if @report.calls.positive?)]
      end

      def notes
        texts = @warnings.map { |warning| SyscallsWords.path(warning.message) } + SyscallsWords.notes(@report, @hints)
        texts.map { |text| "> #{Markdown.text(text)}" }
      end

      def unseen = [SyscallsWords.unseen(@format)].compact.map { |text| Markdown.text(text) }

      def passes
        rows = @report.passes.select { |pass| pass.markers.positive? }.map do |pass|
          [Markdown.code(pass.name), Units.count(pass.markers), Units.count(pass.calls), format("%.1f", pass.average),
           Units.percent(pass.explained, @report.calls), Units.count(pass.left)]
        end
        return ["No pattern was found."] if rows.empty?

        Markdown.table(["pass", "markers", "calls", "average", "explained", "calls left"], rows)
      end

      def findings
        @report.findings.first(@limit).map do |pass|
          "- #{Markdown.code(pass.name)} #{SyscallsWords.saves(@report, pass)}: " \
            "#{Markdown.text(pass.pattern.explanation)}. **Fix:** #{Markdown.text(pass.pattern.advice)}."
        end
      end

      def lines
        rows = @report.lines.first(@limit).map do |line|
          place = line.path.empty? ? "(no Ruby code)" : SyscallsWords.path(@location.text(line.path, line.line))
          [Markdown.code(place), Units.count(line.calls), Units.percent(line.calls, @report.calls), line.pattern.to_s]
        end
        rows.empty? ? [] : Markdown.table(["line of Ruby", "calls", "", "mostly"], rows, left: [0, 3])
      end
    end
  end
end
