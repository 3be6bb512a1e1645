# frozen_string_literal: true

require "pitwall/show"

module Pitwall
  module Show
    # Methods of a report for people: tables of them, and beside them threads and garbage collection.
    class MethodsText
      TOP = 20
      MINE = 8
      THREADS = 10
      # Share of the wall time.
      NOTEWORTHY_GC = 0.1
      private_constant :TOP, :MINE, :THREADS, :NOTEWORTHY_GC

      # Did garbage collection take so much that it is worth a look?
      #: (Analyse::Report) -> bool
      def self.noteworthy_gc?(report) = report.collections.share > NOTEWORTHY_GC

      # @param limit [Integer, nil] rows of a table
      # @param hints [Views::Hints] options that notes suggest
      #: (Analyse::Report, width: Integer, palette: untyped, location: Location, hints: untyped, **untyped) -> void
      def initialize(report, width:, palette:, location:, hints:, limit: nil)
        @report = report
        @width = width
        @palette = palette
        @location = location
        @hints = hints
        @limit = limit
      end

      # Waiting stands apart: the table is of what ran. The application's own methods come first in a server's report.
      #: () -> Array[String]
      def flat
        work = @report.running
        mine = work.application_part if @report.server?
        [*waiting, *(of_application(mine) if mine), *methods(work, TOP)]
      end

      # Of traced calls.
      #: () -> Array[String]
      def calls
        view = CallsView.new(**look, weight: @report.weight, hints: @hints)
        view.lines(@report.call_times, total: @report.total, limit: @limit || TOP)
      end

      # Threads, and garbage collection where it took much. A recording without samples and calls has no threads.
      #: () -> Array[String]
      def beside = [*(["", *threads(limit: THREADS)] if @report.threads.any?), *collection]

      #: (?limit: Integer?) -> Array[String]
      def threads(limit: nil)
        waits = @report.segments.any?(&:sampled?) || !@report.summary.traced?
        ThreadsView.new(**look, waits: waits, hints: @hints).lines(@report.threads, limit: limit)
      end

      # @param commands [Array<String>] to type next, the likeliest first
      #: (Array[String]) -> Array[String]
      def next_steps(commands)
        first, *others = commands
        ["", @palette.dim("Next: #{first}"), *others.map { |command| @palette.dim("      #{command}") }]
      end

      private

      def look = { width: @width, palette: @palette, location: @location }

      def of_application(report)
        [@palette.bold("The application's methods, with what they call"), *methods(report, MINE), "",
         @palette.bold("All methods")]
      end

      def methods(report, most)
        view = FlatView.new(**look, weight: @report.weight, total: report.total, also: report.second_weight,
                                    hints: @hints)
        view.lines(report.flat, limit: @limit || most)
      end

      def waiting
        return [] if @report.running.equal?(@report)

        waiting = @report.waiting
        longest = waiting.rows.first(3).map { |name, ns| "#{name} #{Units.duration(ns)}" }
        longest << "others" if waiting.rows.size > 3
        share = "#{Units.duration(waiting.total)} of #{Units.duration(waiting.all)} " \
                "(#{Units.percent(waiting.total, waiting.all)})"
        text = "waiting: #{share}: #{longest.join(", ")}; below is the time in which threads ran (#{@hints.waiting})"
        [*Text.wrap(text, @width).map { |line| @palette.cyan(line) }, ""]
      end

      # Said where it is worth a look.
      def collection
        return [] unless MethodsText.noteworthy_gc?(@report)

        timeline = @report.collections
        share = Units.percent(timeline.total_ns, timeline.wall_ns)
        runs = Units.things(timeline.count, "run")
        ["", @palette.yellow("garbage collection took #{share} of the wall time, in #{runs}")]
      end
    end
  end
end
