# frozen_string_literal: true

require "pitwall/views/report_view"

module Pitwall
  module Views
    # The call graph: each method and native function with its callers and callees.
    class Graph < ReportView
      # Rows of the chains of callers, where no limit is asked for.
      CHAIN_ROWS = 200
      private_constant :CHAIN_ROWS

      #: () -> String
      def name = "graph"

      #: () -> Array[Symbol]
      def own_options = %i[symbol object]

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--symbol NAME", "of --view graph: one method or native function, with all its places and the " \
                                   "chains of its callers") { |name| options[:symbol] = name }
        parser.on("--object NAME", "of --view graph: native functions of one shared object, e.g. libruby.so or libc; " \
                                   "their callers and callees may be of others") do |name|
          options.update(object: name, native: true)
        end
      end

      #: () -> Array[String]
      def formats = %w[text json markdown]

      #: () -> bool
      def thresholds? = true

      #: () -> bool
      def weighs? = true

      # @raise [UsageError]
      #: (Subject) -> void
      def check(subject)
        super
        asked = subject.asked
        if asked[:symbol] && asked[:object]
          raise UsageError, "--object is for all symbols of a shared object, and --symbol for one: leave one out"
        end

        check_symbol(subject) if asked[:symbol]
      end

      #: (Drawing) -> Array[String]
      def lines(drawing)
        report = drawing.report
        return view(drawing, report.least).lines(report.graph, limit: drawing.limit || ROWS) unless report.query.symbol

        symbol = report.symbol_graph
        view(drawing, symbol.least).of(symbol, limit: drawing.limit || CHAIN_ROWS)
      end

      #: (Show::JsonRows) -> Hash[String, untyped]
      def fields(rows) = { "graph" => rows.graph }

      #: (Subject) -> String
      def markdown(subject) = Show::GraphMarkdown.new(subject.report, **report_options(subject)).to_s

      private

      # Native functions are unknown where they are folded.
      def check_symbol(subject)
        subject.report.symbol_graph
      rescue UsageError => error
        raise if subject.asked[:native]

        raise UsageError, "#{error.message} (a native function? add --native)"
      end

      def view(drawing, least) = Show::GraphView.new(**drawing.weighed, least: least)

      def report_options(subject) = { **markdown_options(subject), base: subject.application.base }
    end
  end
end
