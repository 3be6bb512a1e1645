# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The garbage collector's runs: totals, a time line, why they ran, and the longest pauses.
    class GCView
      BLOCKS = ["", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"].freeze
      # Lines of the time line; columns beyond which it gets no clearer.
      HEIGHT = 6
      WIDEST = 100
      LONGEST = 10
      # In the order of a reader's interest.
      CAUSES = { newobj: "no free slot", malloc: "malloc'd bytes", method: "GC.start", capi: "an extension", stress: "GC.stress", mixed: "several" }.freeze
      MAJOR = { nofree: "no free page", oldgen: "old objects", shady: "unprotected objects", force: "asked for", oldmalloc: "bytes of old objects",
                mixed: "several", major: "unknown" }.freeze
      private_constant :BLOCKS, :HEIGHT, :WIDEST, :LONGEST, :CAUSES, :MAJOR

      # Why the collector ran, in words.
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

      # @param limit [Integer, nil] of the longest pauses
      #: (Analyse::GCTimeline, ?limit: Integer?) -> Array[String]
      def lines(timeline, limit: nil)
        return [timeline.unrecorded? ? "the garbage collector's runs were not recorded (gc: false)" : "the garbage collector did not run"] if timeline.runs.empty?

        [*totals(timeline), "", *drawing(timeline), "", *causes(timeline), "", *longest(timeline, limit || LONGEST)]
      end

      private

      def totals(timeline)
        pauses = timeline.pauses
        first = "#{Units.things(timeline.count, "run")} (#{Units.count(timeline.majors)} major) took #{Units.duration(timeline.total_ns)}, " \
                "#{Units.percent(timeline.total_ns, timeline.wall_ns)} of the wall time: #{Units.duration(timeline.marking_ns)} marking, #{Units.duration(timeline.sweeping_ns)} sweeping"
        second = "#{Units.things(pauses.count, "pause")}, #{per_second(pauses.per_second)} a second, the longest #{Units.duration(pauses.longest_ns)}#{quantiles(pauses)}"
        notes = timeline.merged? ? ["so many runs that neighbours were recorded as one: what is said of a run is of several there"] : []
        notes << "of some of the processes runs were not recorded (gc: false)" if timeline.unrecorded?
        [first, second, *notes].flat_map { |text| Text.wrap(text, @width) }
      end

      def quantiles(pauses)
        pauses.median_ns ? "; of each run's longest: median #{Units.duration(pauses.median_ns)}, p99 #{Units.duration(pauses.p99_ns)}" : ""
      end

      def per_second(number) = number >= 10 ? Units.count(number.round) : format("%.1f", number)

      # Bars of the share that collection had, from nothing to all of the time; below, which columns a major run began in.
      def drawing(timeline)
        columns = [@width - 7, WIDEST].min
        buckets = timeline.buckets(columns)
        top = scale(buckets.map(&:share).max)
        rows = HEIGHT.times.map do |row|
          floor = HEIGHT - 1 - row
          cells = buckets.map { |bucket| BLOCKS[(bucket.share / top * HEIGHT * 8 - floor * 8).ceil.clamp(0, 8)] }
          label = { 0 => format("%d%%", top * 100), HEIGHT - 1 => "0%" }[row].to_s
          "#{@palette.dim(Text.right(label, 4))} #{@palette.dim("│")}#{@palette.yellow(cells.map { |cell| cell.empty? ? " " : cell }.join.rstrip)}".rstrip
        end
        majors = buckets.map { |bucket| bucket.majors.positive? ? "▲" : " " }.join.rstrip
        ending = Units.duration(buckets.last.to_ns)
        axis = "     #{@palette.dim("└#{"─" * columns}")}"
        foot = "      0#{Text.right(ending, columns - 1)}"
        ["share of the time in garbage collection#{", ▲ a major run" unless majors.empty?}", *rows, axis, *(majors.empty? ? [] : ["      #{majors}"]), @palette.dim(foot)]
      end

      # A round share at or above the highest bar.
      def scale(share) = [0.05, 0.1, 0.25, 0.5].find { |top| share <= top } || 1.0

      def causes(timeline)
        rows = timeline.causes.map do |cause|
          [GCView.reason(cause), Units.count(cause.runs), Units.duration(cause.total_ns), Units.percent(cause.total_ns, timeline.total_ns),
           Units.duration(cause.longest_ns), Units.count(cause.allocated)]
        end
        Columns.new(heads: ["why", "runs", "time", "of GC", "longest", "objects"], width: @width, palette: @palette, name: 34).lines(rows)
      end

      def longest(timeline, limit)
        pauses = timeline.longest(limit)
        table = Table.new(heads: ["longest", "at", "kind", "what ran"], width: @width, palette: @palette, location: @location)
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
