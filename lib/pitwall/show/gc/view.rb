# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The garbage collector's runs as text: totals, a time line, causes, and the longest pauses.
    class GCView
      BLOCKS = ["", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"].freeze
      HEIGHT = 6 # lines of the time line
      WIDEST = 100 # columns of the time line, at most: more don't make it clearer
      LONGEST = 10 # pauses, by default
      # Cause of a run → words, ordered by a reader's interest.
      CAUSES = { newobj: "no free slot", malloc: "malloc'd bytes", method: "GC.start", capi: "an extension",
                 stress: "GC.stress", mixed: "several" }.freeze
      # Cause of a major run → words.
      MAJOR = { nofree: "no free page", oldgen: "old objects", shady: "unprotected objects", force: "asked for",
                oldmalloc: "bytes of old objects", mixed: "several", major: "unknown" }.freeze
      private_constant :BLOCKS, :HEIGHT, :WIDEST, :LONGEST, :CAUSES, :MAJOR

      # A run's cause in words: "malloc'd bytes; major: old objects".
      # @param run [Analyse::GCTimeline::Cause, Record::Collection]
      #: (untyped) -> String
      def self.reason(run)
        return "begun before the recording" if run.runs.zero?

        why = CAUSES.fetch(run.cause, "unknown")
        run.major_cause ? "#{why}; major: #{MAJOR.fetch(run.major_cause, run.major_cause.to_s)}" : why
      end

      #: (width: Integer, palette: untyped, location: Location) -> void
      def initialize(width:, palette:, location:)
        @width = width
        @palette = palette
        @location = location
      end

      # The view's lines.
      # @param limit [Integer, nil] number of the longest pauses
      #: (Analyse::GCTimeline, ?limit: Integer?) -> Array[String]
      def lines(timeline, limit: nil)
        if timeline.runs.empty?
          return ["the garbage collector's runs were not recorded (gc: false)"] if timeline.unrecorded?

          return ["the garbage collector did not run"]
        end

        [*totals(timeline), "", *drawing(timeline), "", *causes(timeline), "", *longest(timeline, limit || LONGEST)]
      end

      private

      def totals(timeline)
        pauses = timeline.pauses
        first = "#{Units.things(timeline.count, "run")} (#{Units.count(timeline.majors)} major) " \
                "took #{Units.duration(timeline.total_ns)}, " \
                "#{Units.percent(timeline.total_ns, timeline.wall_ns)} of the wall time: " \
                "#{Units.duration(timeline.marking_ns)} marking, #{Units.duration(timeline.sweeping_ns)} sweeping"
        second = "#{Units.things(pauses.count, "pause")}, #{per_second(pauses.per_second)} a second, " \
                 "the longest #{Units.duration(pauses.longest_ns)}#{quantiles(pauses)}"
        notes = []
        if timeline.merged?
          notes << "so many runs that neighbours were recorded as one: what is said of a run is of several there"
        end
        notes << "of some of the processes runs were not recorded (gc: false)" if timeline.unrecorded?
        [first, second, *notes].flat_map { |text| Text.wrap(text, @width) }
      end

      def quantiles(pauses)
        return "" unless pauses.median_ns

        "; of each run's longest: median #{Units.duration(pauses.median_ns)}, p99 #{Units.duration(pauses.p99_ns)}"
      end

      def per_second(number) = number >= 10 ? Units.count(number.round) : format("%.1f", number)

      # Bars of GC's share of the time, and below them a mark for each column in which a major run began.
      def drawing(timeline)
        columns = [@width - 7, WIDEST].min
        buckets = timeline.buckets(columns)
        top = scale(buckets.map(&:share).max)
        rows = HEIGHT.times.map do |row|
          floor = HEIGHT - 1 - row
          cells = buckets.map { |bucket| BLOCKS[(bucket.share / top * HEIGHT * 8 - floor * 8).ceil.clamp(0, 8)] }
          label = { 0 => format("%d%%", top * 100), HEIGHT - 1 => "0%" }[row].to_s
          bars = @palette.yellow(cells.map { |cell| cell.empty? ? " " : cell }.join.rstrip)
          "#{@palette.dim(Text.right(label, 4))} #{@palette.dim("│")}#{bars}".rstrip
        end
        majors = buckets.map { |bucket| bucket.majors.positive? ? "▲" : " " }.join.rstrip
        ending = Units.duration(buckets.last.to_ns)
        axis = "     #{@palette.dim("└#{"─" * columns}")}"
        foot = "      0#{Text.right(ending, columns - 1)}"
        ["share of the time in garbage collection#{", ▲ a major run" unless majors.empty?}", *rows, axis,
         *(majors.empty? ? [] : ["      #{majors}"]), @palette.dim(foot)]
      end

      # Top of the axis: a round share at or above the highest bar.
      def scale(share) = [0.05, 0.1, 0.25, 0.5].find { |top| share <= top } || 1.0

      def causes(timeline)
        rows = timeline.causes.map do |cause|
          [GCView.reason(cause), Units.count(cause.runs), Units.duration(cause.total_ns),
           Units.percent(cause.total_ns, timeline.total_ns),
           Units.duration(cause.longest_ns), Units.count(cause.allocated)]
        end
        heads = ["why", "runs", "time", "of GC", "longest", "objects"]
        Columns.new(heads: heads, width: @width, palette: @palette, name: 34).lines(rows)
      end

      def longest(timeline, limit)
        pauses = timeline.longest(limit)
        table = Table.new(heads: ["longest", "at", "kind", "what ran"], width: @width, palette: @palette,
                          location: @location)
        table.lines(pauses.map { |pause| row(pause) })
      end

      def row(pause)
        run = pause.run.collection
        kind = run.runs.zero? ? "earlier" : (run.major? ? "major" : "minor")
        numbers = [Units.duration(pause.ns), Units.duration(pause.at_ns), kind]
        return Table::Row.new(numbers: numbers, name: "(no sample)") unless pause.method

        Table::Row.new(numbers: numbers, name: pause.method.name, place: [pause.path, pause.line])
      end
    end
  end
end
