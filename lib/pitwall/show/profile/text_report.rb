# frozen_string_literal: true

require "shellwords"
require "pitwall/show"

module Pitwall
  module Show
    # The report for people: header, the view asked for, what to try next.
    class TextReport
      # Columns below which numbers alone would not fit.
      NARROWEST = 60
      # Of tables that no terminal cuts.
      WIDE = 160
      TOP = 20
      MINE = 8
      THREADS = 10
      TREE = 200
      # Share of the wall time.
      NOTEWORTHY_GC = 0.1
      private_constant :WIDE, :TOP, :MINE, :THREADS, :TREE, :NOTEWORTHY_GC

      # @param file [String] the recording, for the hints
      # @param base [String, nil] the folder below which paths are shown relative
      # @param source [#call, nil] (path, line) → text of a source line, or nil
      # @param limit [Integer, nil] rows in a table
      # @param fit [Boolean] whether what requests are for is cut to the width, as on a terminal
      # @param all_frames [Boolean] whether the tree shows each frame of a long run of other code
      # @param findings [Array<Hash>] as FindingWords#to_h gives them
      #: (Analyse::Report, file: String, ?width: Integer, ?palette: untyped, ?base: String?, **untyped) -> void
      def initialize(report, file:, width: 100, palette: Plain, base: nil, source: nil, limit: nil, warnings: [], difference: nil, fit: true, findings: [], all_frames: false)
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
        @findings = findings
        @all_frames = all_frames
      end

      # @param view [Symbol] :flat, :calls, :tree, :bottom_up, :lines, :threads, :labels, :requests, :queries, :tests, :gc, :gc_cost, :callers or :callees
      #: (?Symbol) -> String
      def to_s(view = :flat)
        header = HeaderView.new(width: @width, palette: @palette).lines(@report.summary, warnings: @warnings, difference: @difference)
        [*header, *part, *FindingsView.new(width: @width, palette: @palette).lines(@findings), "", *queries_of_request(view), *body(view)].join("\n")
      end

      # Without header and hints.
      #: (Symbol) -> Array[String]
      def body(view)
        return [uncalled] if @report.summary.uncalled? && !%i[threads queries tests gc].include?(view)
        return [nothing] if @report.total.zero? && !%i[threads labels requests queries tests gc gc_cost].include?(view)

        case view
        when :flat then flat + threads + collection + hint
        when :calls then calls + threads + collection + hint
        when :tree then outline(@report.top_down, false)
        when :bottom_up then outline(@report.bottom_up, true)
        when :lines then LinesView.new(**common).lines(@report.lines, limit: @limit || (TOP unless @report.query.within), source: @source)
        when :threads then threads_view.lines(@report.threads, limit: @limit)
        when :labels then LabelsView.new(width: @width, palette: @palette, location: @location).lines(@report.labels, limit: @limit)
        when :requests then requests
        when :queries then queries
        when :tests then tests
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
        words << "only the application's frames: what other code costs counts for the frame that called it" if query.only_mine
        words << "idle threads left out (they waited for work; --idle counts them): #{list(@report.left_out)}" if @report.left_out.any?
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

      # Waiting stands apart: the table is of what ran. The application's own methods come first in a server's report.
      def flat
        work = @report.work
        mine = work.mine if @report.server?
        first = mine ? [@palette.bold("The application's methods, with what they call"), *methods(mine, MINE), "", @palette.bold("All methods")] : []
        [*waiting, *first, *methods(work, TOP)]
      end

      def methods(report, most)
        FlatView.new(**common, total: report.total, also: report.beside).lines(report.flat, limit: @limit || most)
      end

      def waiting
        return [] if @report.work.equal?(@report)

        waiting = @report.waiting
        longest = waiting.rows.first(3).map { |name, ns| "#{name} #{Units.duration(ns)}" }
        longest << "others" if waiting.rows.size > 3
        share = "#{Units.duration(waiting.total)} of #{Units.duration(waiting.all)} (#{Units.percent(waiting.total, waiting.all)})"
        text = "waiting: #{share}: #{longest.join(", ")}; below is the time in which threads ran (--idle has all)"
        [*Text.wrap(text, @width).map { |line| @palette.cyan(line) }, ""]
      end

      def calls
        view = CallsView.new(weight: @report.weight, width: @width, palette: @palette, location: @location)
        view.lines(@report.call_times, total: @report.total, limit: @limit || TOP)
      end

      def requests
        view = RequestsView.new(width: @fit ? @width : Float::INFINITY, palette: @palette, location: @location, file: @file)
        asked = ->(row) { @report.queries_of(row) } if @report.queries?
        notes = asked ? ["#{QueriesView.total(@report.query_total)} (--view queries)"] : QueriesView.drivers(@report.driver_time)
        view.lines(@report.requests, count: @report.request_count, limit: @limit || TOP, asked: asked, notes: notes)
      end

      def queries
        queries_view.lines(@report.queries, @report.query_total, drivers: @report.driver_time, limit: @limit || TOP)
      end

      def queries_view = QueriesView.new(width: @fit ? @width : [@width, WIDE].max, palette: @palette, location: @location)

      # Of the request that is looked at.
      def queries_of_request(view)
        request = @report.query.request
        return [] if request.nil? || view == :queries

        queries_view.of_request(@report.queries_of(request), request.duration_ns)
      end

      def tests
        view = TestsView.new(width: @fit ? @width : Float::INFINITY, palette: @palette, location: @location, file: @file)
        view.lines(@report.tests, sampled: @report.segments.any?(&:sampled?), limit: @limit || TOP)
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
        result = Analyse::Outline.folded(result) { |method| !@report.query.origin.mine?(method) } unless bottom_up || @all_frames
        view.lines(result, limit: @limit || TREE)
      end

      def hint
        hottest = @report.work.flat.find { |row| row.method.kind < 2 && !@report.waits?(row.method) }&.method
        lines = ["pitwall report #{@file} --tree#{weighed}", "pitwall report #{@file} #{@report.summary.traced? ? "--bottom-up" : lines_of}#{weighed}"]
        requests = @report.tests.empty? && @report.request_count.to_i.positive? && @report.query.request.nil?
        lines.unshift("pitwall report #{@file} --view requests#{labels}") if requests
        lines << "pitwall report #{@file} --view gc" if noteworthy_gc? && labels.empty?
        # Left out where it would not run as it stands, or would have to be cut.
        plain = hottest&.name&.match?(/\A[\w:#.?!]+\z/) && @file.size + hottest.name.size + 30 <= @width
        lines.unshift("pitwall report #{@file} --callers #{quote(hottest.name)}#{weighed}") if plain
        lines.unshift("pitwall report #{@file} --view tests#{labels}") if @report.tests.any? && @report.query.request.nil?
        ["", @palette.dim("Next: #{lines.first}"), *lines.drop(1).map { |line| @palette.dim("      #{line}") }]
      end

      # Of the application's heaviest file.
      def lines_of
        file = @report.heaviest_file
        words = file && Shellwords.escape(@location.text(file, 0))
        words && @file.size + words.size + 30 <= @width ? "--lines #{words}" : "--view lines"
      end

      # What was asked for, so that what is suggested shows the same part. Where objects were followed, there may be no times to fall back on.
      def weighed = "#{" --weight #{@report.weight}" if %i[objects bytes gc].include?(@report.weight)}#{labels}#{" --only-mine" if @report.query.only_mine}"

      def labels = (@report.query.selection.labels || {}).map { |pair| " --label #{quoted(pair.join("="))}" }.join

      def quoted(word) = word.match?(/\A[\w.:=#-]+\z/) ? word : (word.include?("'") ? Shellwords.escape(word) : "'#{word}'")

      # A # starts a comment only at the start of a word; a ! is history in an interactive shell.
      def quote(name) = name.match?(/[!?]/) ? "'#{name}'" : name
    end
  end
end
