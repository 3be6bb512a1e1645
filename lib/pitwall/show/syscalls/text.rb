# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/syscalls/view"
require "pitwall/show/terminal/table"

module Pitwall
  module Show
    # System calls as text: the patterns found, the savings of fixes, sizes of scans, the remaining calls, and the Ruby
    # lines that made the calls.
    class SyscallsText < SyscallsView
      TOP = 10 # rows of a table, by default
      PLACES = 3 # places below a finding, at most
      BAR = 24 # columns of a histogram's longest bar
      private_constant :TOP, :PLACES, :BAR

      # The list of all patterns (--patterns list).
      #: (Analyse::SyscallPatterns, width: Integer, palette: untyped) -> Array[String]
      def self.table(patterns, width:, palette:)
        patterns.flat_map do |pattern|
          advice = pattern.advice || "(no advice: does not count as explained)"
          texts = ["calls: #{pattern.how}", pattern.explanation, "→ #{advice}"]
          [palette.bold("#{pattern.name}#{"  (the study's)" if pattern.study?}"),
           *texts.flat_map { |text| Text.wrap(text, width - 2) }.map { |line| "  #{line}" }]
        end
      end

      #: (?limit: Integer?, ?width: Integer, ?palette: untyped, **untyped) -> void
      def initialize(limit: nil, width: 100, palette: Plain, **shared)
        super(limit: limit || TOP, **shared)
        @width = [width, TextReport::NARROWEST].max
        @palette = palette
        @location = Location.new(@base)
      end

      # The report's text, without a newline at its end.
      #: () -> String
      def to_s
        parts = @report.calls.zero? ? [header, unseen] : [header, passes, findings, sizes, rest, ruby, unseen, steps]
        parts.reject(&:empty?).map { |part| part.join("\n") }.join("\n\n")
      end

      private

      def header
        title = wrap(heading.join(" · ")).map { |line| @palette.bold(line) }
        explained = @report.calls.zero? ? [] : wrap(SyscallsWords.explained(@report))
        title + explained +
          @warnings.flat_map { |warning| note("!", SyscallsWords.path(warning.message), :yellow) } +
          SyscallsWords.notes(@report, @hints).flat_map { |text| note("i", text, :dim) }
      end

      # The table of patterns. Patterns that were not found share one line.
      def passes
        found, none = @report.passes.partition { |pass| pass.markers.positive? }
        return ["no pattern was found"] if found.empty?

        rows = found.map do |pass|
          [pass.name, Units.count(pass.markers), Units.count(pass.calls), format("%.1f", pass.average),
           Units.percent(pass.explained, @report.calls), Units.count(pass.left),
           *(Units.duration(pass.ns) if @report.timed?)]
        end
        heads = ["pass", "markers", "calls", "average", "explained", "calls left", *("time" if @report.timed?)]
        lines = Columns.new(heads: heads, width: @width, palette: @palette).lines(rows)
        none.empty? ? lines : lines + wrap("none: #{none.map(&:name).join(" ")}").map { |line| @palette.dim(line) }
      end

      def findings
        found = @report.findings
        return [] if found.empty?

        shown = found.first(@limit)
        more = "#{found.size - shown.size} more (#{@hints.rows(found.size)})" if found.size > shown.size
        [*wrap(SyscallsWords.saving(found)).map { |line| @palette.dim(line) },
         *shown.flat_map { |pass| finding(pass) }, *(@palette.dim(more) if more)]
      end

      def finding(pass)
        texts = [pass.pattern.explanation, "→ #{pass.pattern.advice}"]
        ["#{@palette.bold(pass.name)}  #{SyscallsWords.saves(@report, pass)}",
         *texts.flat_map { |text| Text.wrap(text, @width - 2) }.map { |line| "  #{line}" }, *places(pass)]
      end

      # A finding's places: lines of Ruby where stacks were recorded, else folders or names.
      def places(pass)
        return lines_of(pass) if @report.stacks?

        rows = pass.groups([@limit, PLACES].max).first(PLACES)
        rows.map do |row|
          "  #{@palette.dim(Text.right(Units.count(row.count), 8))}  #{@palette.dim(fit(row.path, @width - 12))}"
        end
      end

      def lines_of(pass)
        @report.lines_of(pass).first(PLACES).map do |line|
          place = @location.fit(line.path, line.line, @width - 12)
          "  #{@palette.dim(Text.right(Units.count(line.calls), 8))}  #{@palette.dim(place)}"
        end
      end

      def sizes
        SyscallsWords.of_many_sizes(@report).flat_map do |pass|
          rows = SyscallsWords.histogram(pass.sizes)
          most = rows.map(&:last).max
          widest = rows.map { |size, _| Text.width(size) }.max
          counts = rows.map { |_, markers| Units.count(markers).size }.max
          bars = rows.map do |size, markers|
            bar = @palette.cyan("█" * [BAR * markers / most, 1].max)
            "  #{Text.right(size, widest)}  #{Text.right(Units.count(markers), counts)}  #{bar}"
          end
          [@palette.dim("calls in a #{pass.name}"), *bars]
        end
      end

      def rest
        left = @report.calls - @report.passes.sum(&:calls)
        return ["nothing is left"] if left.zero?

        by_call = @report.by_call
        rows = by_call.first(@limit).map do |row|
          [SyscallsWords.path(row.name), Units.count(row.calls), Units.count(row.calls - row.explained),
           Units.percent(row.calls - row.explained, left), *(Units.duration(row.ns) if @report.timed?)]
        end
        heads = ["call", "all", "left", "", *("time of all" if @report.timed?)]
        [@palette.dim("what is left: #{Units.things(left, "call")}"),
         *Columns.new(heads: heads, width: @width, palette: @palette).lines(rows),
         "", *of_paths(@report.rest_by_path(@limit), "left, by path", left),
         "", *of_paths(@report.rest_by_name(@limit), "left, by name", left)]
      end

      def of_paths(rows, head, whole)
        rows = rows.first(@limit)
        return [] if rows.empty?

        counts = rows.map { |row| Units.count(row.calls).size }.max.clamp(5, 20)
        lines = rows.map do |row|
          numbers = [Text.right(Units.count(row.calls), counts), Text.right(Units.percent(row.calls, whole), 5)]
          [*numbers, fit(row.path, @width - counts - 9)].join("  ")
        end
        [@palette.dim("#{Text.right("calls", counts)}         #{head}"), *lines]
      end

      def ruby
        return gems_of_paths unless @report.stacks?

        lines = @report.lines
        shown = lines.first(@limit)
        table = Table.new(heads: ["calls", "", *("time" if @report.timed?), "mostly", "line of Ruby"],
                          width: @width, palette: @palette, location: @location)
        rows = shown.map do |line|
          numbers = [Units.count(line.calls), Units.percent(line.calls, @report.calls),
                     *(Units.duration(line.ns) if @report.timed?), line.pattern.to_s]
          Table::Row.new(numbers: numbers, name: line.path.empty? ? "(no Ruby code)" : "",
                         place: ([line.path, line.line] unless line.path.empty?))
        end
        rest = lines.size - shown.size
        more = "#{Units.things(rest, "more line")} (#{@hints.rows(lines.size)})" if rest.positive?
        [*table.lines(rows), *(@palette.dim(more) if more),
         *%i[gem phase feature].flat_map { |key| ["", *by(@report.by(key), key.to_s)] }]
      end

      def gems_of_paths
        rows = @report.by_gem_of_path
        rows.size < 2 ? [] : by(rows, "whose files")
      end

      def by(rows, head)
        cells = rows.first(@limit).map do |row|
          [row.name.empty? ? "(none)" : short(row.name), Units.count(row.calls),
           Units.percent(row.calls, @report.calls), *figures(row)]
        end
        heads = [head, "calls", "", "explained", *("time" if @report.timed?)]
        Columns.new(heads: heads, width: @width, palette: @palette).lines(cells)
      end

      def figures(row) = [Units.percent(row.explained, row.calls), *(Units.duration(row.ns) if @report.timed?)]

      def short(name) = @location.text(SyscallsWords.path(name), 0)

      def fit(path, columns)
        text = SyscallsWords.path(path)
        text = text.delete_prefix("#{@base.chomp("/")}/") if @base && text.size > @base.size + 1
        Text.shorten_left(text, columns)
      end

      def steps
        file = @file == "-" ? "LOG" : @file.delete_prefix("#{@base}/")
        lines = ["Next: pitwall syscalls #{file} #{@hints.collapsed} | less",
                 "      pitwall syscalls #{file} LOG-AFTER-THE-FIX"]
        lines.map { |line| @palette.dim(Text.shorten_right(line, @width)) }
      end

      def unseen
        text = SyscallsWords.unseen(@format)
        text ? wrap(text).map { |line| @palette.dim(line) } : []
      end

      def wrap(text) = Text.wrap(text, @width)

      def note(mark, text, style) = wrap("#{mark} #{text}").map { |line| @palette.public_send(style, line) }
    end
  end
end
