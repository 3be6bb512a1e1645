# frozen_string_literal: true

require "pitwall/show"

module Pitwall
  module Show
    # What stands above every view of a report for people: the header, which part of the recording is shown, what stands
    # out.
    class TextReport
      # Columns below which numbers alone would not fit.
      NARROWEST = 60

      # @param hints [Views::Hints] options that notes suggest
      # @param findings [Array<Hash>] as FindingWords#to_h gives them
      #: (Analyse::Report, width: Integer, hints: untyped, ?palette: untyped, **untyped) -> void
      def initialize(report, width:, hints:, palette: Plain, warnings: [], difference: nil, findings: [])
        @report = report
        @width = [width, NARROWEST].max
        @palette = palette
        @hints = hints
        @warnings = warnings
        @difference = difference
        @findings = findings
      end

      # @param body [Array<String>] lines of a view
      #: (Array[String]) -> String
      def to_s(body)
        findings = FindingsView.new(width: @width, palette: @palette).lines(@findings)
        [*header, *part, *findings, "", *body].join("\n")
      end

      # Of a trace without calls: there is no table to make of it, nor anything to look at next.
      #: () -> String
      def uncalled
        filtered = Analyse::TraceFilters.any?(@report.segments)
        filtered ? "nothing was called that the filters let through" : "nothing was called while it was traced"
      end

      # Where nothing has any weight.
      #: () -> String
      def nothing = "nothing was recorded with weight #{@report.weight} in the part asked for"

      private

      def header
        view = HeaderView.new(width: @width, palette: @palette, hints: @hints)
        view.lines(@report.summary, warnings: @warnings, difference: @difference)
      end

      # What the numbers below are of, where that is not everything.
      def part
        query = @report.query
        words = [*only, *filters, *own, *left_out]
        words << "folded below #{query.blackbox.join(", ")}" if query.blackbox.any?
        words << { apart: "garbage collection apart", caller: "garbage collection charged to its callers" }[query.gc]
        words.compact.flat_map { |text| Text.wrap(text, @width) }.map { |line| @palette.cyan(line) }
      end

      def only
        query = @report.query
        chosen = query.selection
        parts = [(request(query.request) if query.request), chosen.process && "process #{chosen.process}",
                 chosen.thread && "thread #{chosen.thread}",
                 chosen.state && "state #{Analyse::States.name(chosen.state)}",
                 *(chosen.labels || {}).map { |name, value| "#{name}=#{value}" }].compact
        parts.empty? ? [] : ["only #{parts.join(", ")}: #{Units.value(@report.total, @report.weight)}"]
      end

      # What filters keep, and how much of the whole it is.
      def filters
        samples, stacks = @report.query.filters.words
        share = Units.percent(@report.total, @report.whole) if samples.any? && @report.whole.positive?
        [*("#{samples.join(", ")}: #{share} of the whole" if share), *(stacks.join(", ") if stacks.any?)]
      end

      def request(request)
        words = [request.name, "took #{Units.duration(request.duration_ns)}"].reject(&:empty?)
        "request #{request.number} (#{words.join(", ")})"
      end

      def own
        return [] unless @report.query.only_mine

        ["only the application's frames: what other code costs counts for the frame that called it"]
      end

      def left_out
        names = @report.left_out
        return [] if names.empty?

        ["idle threads left out (they waited for work; #{@hints.idle}): #{Analyse::SomeNames.of(names, 6)}"]
      end
    end
  end
end
