# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/syscalls/view"
require "pitwall/show/terminal/table"

module Pitwall
  module Show
    # System calls for people: the passes, what a fix would save and how, sizes of scans, what is left, and which Ruby made them.
    class SyscallsText < SyscallsView
      TOP = 10
      # Places below a finding.
      PLACES = 3
      BAR = 24
      private_constant :TOP, :PLACES, :BAR

      # The pattern table.
      #: (Analyse::SyscallPatterns, width: Integer, palette: untyped) -> Array[String]
      def self.table(patterns, width:, palette:)
        patterns.flat_map do |pattern|
          [palette.bold("#{pattern.name}#{"  (the study's)" if pattern.study?}"), *["calls: #{pattern.how}", pattern.explanation, "→ #{pattern.advice || "(no advice: does not count as explained)"}"]
            .flat_map { |text| Text.wrap(text, width - 2).map { |line| "  #{line}" } }]
        end
      end

      #: (?limit: Integer?, ?width: Integer, ?palette: untyped, **untyped) -> void
      def initialize(limit: nil, width: 100, palette: Plain, **shared)
        super(limit: limit || TOP, **shared)
        @width = [width, TextReport::NARROWEST].max
        @palette = palette
        @location = Location.new(@base)
      end

      #: () -> String
      def to_s = (@report.calls.zero? ? [header, unseen] : parts).reject(&:empty?).map { |part| part.join("\n") }.join("\n\n")

      private

      def parts = [header, passes, findings, sizes, rest, ruby, unseen, hints]

      def header
        wrap(heading.join(" · ")).map { |line| @palette.bold(line) } + (@report.calls.zero? ? [] : wrap(SyscallsWords.explained(@report))) +
          @warnings.flat_map { |warning| note("!", SyscallsWords.path(warning.message), :yellow) } + SyscallsWords.notes(@report).flat_map { |text| note("i", text, :dim) }
      end

      # Those that found nothing take one line together.
      def passes
        found, none = @report.passes.partition { |pass| pass.markers.positive? }
        rows = found.map do |pass|
          [pass.name, Units.count(pass.markers), Units.count(pass.calls), format("%.1f", pass.average), Units.percent(pass.explained, @report.calls), Units.count(pass.left),
           *(Units.duration(pass.ns) if @report.timed?)]
        end
        heads = ["pass", "markers", "calls", "average", "explained", "calls left", *("time" if @report.timed?)]
        lines = rows.empty? ? ["no pattern was found"] : Columns.new(heads: heads, width: @width, palette: @palette).lines(rows)
        lines + (none.empty? || found.empty? ? [] : wrap("none: #{none.map(&:name).join(" ")}").map { |line| @palette.dim(line) })
      end

      def findings
        found = @report.findings
        return [] if found.empty?

        shown = found.first(@limit)
        [*wrap(SyscallsWords.saving(found)).map { |line| @palette.dim(line) }, *shown.flat_map { |pass| finding(pass) },
         *(found.size > shown.size ? [@palette.dim("#{found.size - shown.size} more (--limit #{found.size} shows all)")] : [])]
      end

      def finding(pass)
        advice = Text.wrap("→ #{pass.pattern.advice}", @width - 2)
        ["#{@palette.bold(pass.name)}  #{SyscallsWords.saves(@report, pass)}", *Text.wrap(pass.pattern.explanation, @width - 2).map { |line| "  #{line}" },
         *advice.map { |line| "  #{line}" }, *places(pass)]
      end

      # Where: lines of Ruby where they are known, else folders or names.
      def places(pass)
        return lines_of(pass) if @report.stacks?

        rows = pass.groups([@limit, PLACES].max).first(PLACES)
        rows.map { |row| "  #{@palette.dim(Text.right(Units.count(row.count), 8))}  #{@palette.dim(fit(row.path, @width - 12))}" }
      end

      def lines_of(pass)
        @report.lines_of(pass).first(PLACES).map do |line|
          "  #{@palette.dim(Text.right(Units.count(line.calls), 8))}  #{@palette.dim(@location.fit(line.path, line.line, @width - 12))}"
        end
      end

      def sizes
        SyscallsWords.of_many_sizes(@report).flat_map do |pass|
          rows = SyscallsWords.histogram(pass.sizes)
          most = rows.map(&:last).max
          widest = rows.map { |size, _| Text.width(size) }.max
          counts = rows.map { |_, markers| Units.count(markers).size }.max
          [@palette.dim("calls in a #{pass.name}"),
           *rows.map { |size, markers| "  #{Text.right(size, widest)}  #{Text.right(Units.count(markers), counts)}  #{@palette.cyan("█" * [(BAR * markers / most), 1].max)}" }]
        end
      end

      def rest
        left = @report.calls - @report.passes.sum(&:calls)
        return ["nothing is left"] if left.zero?

        by_call = @report.by_call
        rows = by_call.first(@limit).map do |row|
          [SyscallsWords.path(row.name), Units.count(row.calls), Units.count(row.calls - row.explained), Units.percent(row.calls - row.explained, left), *(Units.duration(row.ns) if @report.timed?)]
        end
        [@palette.dim("what is left: #{Units.things(left, "call")}"),
         *Columns.new(heads: ["call", "all", "left", "", *("time of all" if @report.timed?)], width: @width, palette: @palette).lines(rows),
         "", *of_paths(@report.rest_by_path(@limit), "left, by path", left), "", *of_paths(@report.rest_by_name(@limit), "left, by name", left)]
      end

      def of_paths(rows, head, whole)
        rows = rows.first(@limit)
        return [] if rows.empty?

        counts = rows.map { |row| Units.count(row.calls).size }.max.clamp(5, 20)
        [@palette.dim("#{Text.right("calls", counts)}         #{head}"),
         *rows.map { |row| "#{Text.right(Units.count(row.calls), counts)}  #{Text.right(Units.percent(row.calls, whole), 5)}  #{fit(row.path, @width - counts - 9)}" }]
      end

      def ruby
        return gems_of_paths unless @report.stacks?

        lines = @report.lines
        shown = lines.first(@limit)
        table = Table.new(heads: ["calls", "", *("time" if @report.timed?), "mostly", "line of Ruby"], width: @width, palette: @palette, location: @location)
        rows = shown.map do |line|
          Table::Row.new(numbers: [Units.count(line.calls), Units.percent(line.calls, @report.calls), *(Units.duration(line.ns) if @report.timed?), line.pattern.to_s],
                         name: line.path.empty? ? "(no Ruby code)" : "", place: ([line.path, line.line] unless line.path.empty?))
        end
        [*table.lines(rows), *(lines.size > shown.size ? [@palette.dim("#{Units.things(lines.size - shown.size, "more line")} (--limit #{lines.size} shows all)")] : []),
         *%i[gem phase feature].flat_map { |key| ["", *by(@report.by(key), key.to_s)] }]
      end

      def gems_of_paths
        rows = @report.by_gem_of_path
        rows.size < 2 ? [] : by(rows, "whose files")
      end

      def by(rows, head)
        shown = rows.first(@limit)
        Columns.new(heads: [head, "calls", "", "explained", *("time" if @report.timed?)], width: @width, palette: @palette)
               .lines(shown.map { |row| [row.name.empty? ? "(none)" : short(row.name), Units.count(row.calls), Units.percent(row.calls, @report.calls), *figures(row)] })
      end

      def figures(row) = [Units.percent(row.explained, row.calls), *(Units.duration(row.ns) if @report.timed?)]

      def short(name) = @location.text(SyscallsWords.path(name), 0)

      def fit(path, columns)
        text = SyscallsWords.path(path)
        text = text.delete_prefix("#{@base.chomp("/")}/") if @base && text.size > @base.size + 1
        Text.shorten_left(text, columns)
      end

      def hints
        file = @file == "-" ? "LOG" : @file.delete_prefix("#{@base}/")
        ["Next: pitwall syscalls #{file} --collapsed | less", "      pitwall syscalls #{file} LOG-AFTER-THE-FIX"].map { |line| @palette.dim(Text.shorten_right(line, @width)) }
      end

      def unseen = SyscallsWords.unseen(@format).then { |text| text ? wrap(text).map { |line| @palette.dim(line) } : [] }

      def wrap(text) = Text.wrap(text, @width)

      def note(mark, text, style) = wrap("#{mark} #{text}").map { |line| @palette.public_send(style, line) }
    end
  end
end
