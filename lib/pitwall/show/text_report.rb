# frozen_string_literal: true

require "pitwall/show"

module Pitwall
  module Show
    # The report for people: header, the view asked for, what to try next.
    class TextReport
      # Columns below which numbers alone would not fit.
      NARROWEST = 60
      TOP = 20
      THREADS = 10
      TREE = 200
      # Share of the wall time.
      NOTEWORTHY_GC = 0.1
      private_constant :TOP, :THREADS, :TREE, :NOTEWORTHY_GC

      # @param file [String] the recording, for the hints
      # @param base [String, nil] the folder below which paths are shown relative
      # @param source [#call, nil] (path, line) → text of a source line, or nil
      # @param limit [Integer, nil] rows in a table
      # @param fit [Boolean] whether what requests are for is cut to the width, as on a terminal
      #: (Analyse::Report, file: String, ?width: Integer, ?palette: untyped, ?base: String?, ?source: untyped, ?limit: Integer?, ?warnings: Array[String], ?difference: untyped, ?fit: bool) -> void
      def initialize(report, file:, width: 100, palette: Plain, base: nil, source: nil, limit: nil, warnings: [], difference: nil, fit: true)
        @report = report
        @file = file
        @width = [width, NARROWEST].max
        @palette = palette
        @location = Location.new(base)
        @source = source
        @limit = limit
        @warnings = warnings
        @difference = difference
        @fit = fit
      end

      # @param view [Symbol] :flat, :calls, :tree, :bottom_up, :lines, :threads, :labels, :requests, :gc, :gc_cost, :callers or :callees
      #: (?Symbol) -> String
      def to_s(view = :flat)
        header = HeaderView.new(width: @width, palette: @palette).lines(@report.summary, warnings: @warnings, difference: @difference)
        [*header, *part, "", *body(view)].join("\n")
      end

      # Without header and hints.
      #: (Symbol) -> Array[String]
      def body(view)
        return [uncalled] if @report.summary.uncalled? && !%i[threads gc].include?(view)
        return [nothing] if @report.total.zero? && !%i[threads labels requests gc gc_cost].include?(view)

        case view
        when :flat then flat + threads + collection + hint
        when :calls then calls + threads + collection + hint
        when :tree then outline(@report.top_down, false)
        when :bottom_up then outline(@report.bottom_up, true)
        when :lines then LinesView.new(**common).lines(@report.lines, limit: @limit || (TOP unless @report.query.within), source: @source)
        when :threads then threads_view.lines(@report.threads, limit: @limit)
        when :labels then LabelsView.new(width: @width, palette: @palette, location: @location).lines(@report.labels, limit: @limit)
        when :requests then requests
        when :gc then GCView.new(width: @width, palette: @palette, location: @location).lines(@report.collections, limit: @limit)
        when :gc_cost then GCCostView.new(width: @width, palette: @palette, location: @location).lines(@report.gc_cost, prediction: @report.prediction, limit: @limit)
        when :callers, :callees then NeighboursView.new(**common).lines(view, *@report.public_send(view), limit: @limit || TOP)
        end
      end

      private

      # What the numbers below are of, where that is not everything.
      def part
        query = @report.query
        chosen = query.selection
        request = query.request
        words = [request && "request #{request.number} (#{[request.name, "took #{Units.duration(request.duration_ns)}"].reject(&:empty?).join(", ")})",
                 chosen.process && "process #{chosen.process}", chosen.thread && "thread #{chosen.thread}",
                 chosen.state && "state #{Analyse::States.name(chosen.state)}",
                 *(chosen.labels || {}).map { |name, value| "#{name}=#{value}" }].compact
        words = words.empty? ? [] : ["only #{words.join(", ")}: #{Units.value(@report.total, @report.weight)}"]
        words << "idle threads left out (they waited at one place; --idle counts them): #{list(@report.left_out)}" if @report.left_out.any?
        words << "folded below #{query.blackbox.join(", ")}" if query.blackbox.any?
        words << { apart: "garbage collection apart", caller: "garbage collection charged to its callers" }[query.gc]
        words.compact.flat_map { |text| Text.wrap(text, @width) }.map { |line| @palette.cyan(line) }
      end

      def list(names) = names.size > 6 ? "#{names.first(6).join(", ")} and #{names.size - 6} more" : names.join(", ")

      def common = { weight: @report.weight, total: @report.total, width: @width, palette: @palette, location: @location }

      # There is no table to make of it, nor anything to look at next.
      def uncalled
        Analyse::TraceFilters.any?(@report.segments) ? "nothing was called that the filters let through" : "nothing was called while it was traced"
      end

      def nothing = "nothing was recorded with weight #{@report.weight} in the part asked for"

      def flat = FlatView.new(**common, also: @report.beside).lines(@report.flat, limit: @limit || TOP)

      def calls
        view = CallsView.new(weight: @report.weight, width: @width, palette: @palette, location: @location)
        view.lines(@report.call_times, total: @report.total, limit: @limit || TOP)
      end

      def requests
        view = RequestsView.new(width: @fit ? @width : Float::INFINITY, palette: @palette, location: @location, file: @file)
        view.lines(@report.requests, count: @report.request_count, limit: @limit || TOP)
      end

      # Of a recording without samples and calls there are none.
      def threads
        return [] if @report.threads.empty?

        ["", *threads_view.lines(@report.threads, limit: THREADS)]
      end

      def threads_view
        waits = @report.segments.any?(&:sampled?) || !@report.summary.traced?
        ThreadsView.new(width: @width, palette: @palette, location: @location, waits: waits)
      end

      # Said where it is worth a look.
      def collection
        return [] unless noteworthy_gc?

        timeline = @report.collections
        ["", @palette.yellow("garbage collection took #{Units.percent(timeline.total_ns, timeline.wall_ns)} of the wall time, in #{Units.things(timeline.count, "run")}")]
      end

      def noteworthy_gc? = @report.collections.share > NOTEWORTHY_GC

      def outline(result, bottom_up)
        view = TreeView.new(weight: @report.weight, width: @width, palette: @palette, location: @location, bottom_up: bottom_up)
        view.lines(result, limit: @limit || TREE)
      end

      def hint
        hottest = @report.flat.find { |row| row.method.kind < 2 }&.method
        lines = ["pitwall report #{@file} --tree#{weighed}", "pitwall report #{@file} #{@report.summary.traced? ? "--bottom-up" : "--view lines"}#{weighed}"]
        lines << "pitwall report #{@file} --view gc" if noteworthy_gc?
        # Left out where it would not run as it stands, or would have to be cut.
        plain = hottest&.name&.match?(/\A[\w:#.?!]+\z/) && @file.size + hottest.name.size + 30 <= @width
        lines.unshift("pitwall report #{@file} --callers #{quote(hottest.name)}#{weighed}") if plain
        ["", @palette.dim("Next: #{lines.first}"), *lines.drop(1).map { |line| @palette.dim("      #{line}") }]
      end

      # Where objects were followed, there may be no times to fall back on.
      def weighed = %i[objects bytes gc].include?(@report.weight) ? " --weight #{@report.weight}" : ""

      # A # starts a comment only at the start of a word; a ! is history in an interactive shell.
      def quote(name) = name.match?(/[!?]/) ? "'#{name}'" : name
    end
  end
end
