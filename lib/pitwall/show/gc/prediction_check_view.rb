# frozen_string_literal: true

require "pitwall/show/terminal/figures"
require "pitwall/show/gc/cost_json"
require "pitwall/show/measured/json_values"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # A prediction beside the measured saving, as text and as JSON.
    class PredictionCheckView
      VERDICTS = { within: "as predicted", less: "less than predicted", more: "more than predicted",
                   undecided: "undecided" }.freeze
      STYLES = { within: :green, less: :yellow, more: :yellow, undecided: :yellow }.freeze
      private_constant :VERDICTS, :STYLES

      # @param base [String] name of the side with the place
      # @param side [String] name of the side without the place
      #: (Analyse::PredictionCheck, base: String, side: String) -> void
      def initialize(check, base:, side:)
        @check = check
        @base = base
        @side = side
      end

      # Lines of text: the verdict, a table, and notes.
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Integer, palette: untyped, hints: untyped) -> Array[String]
      def lines(width:, palette:, hints:)
        style = STYLES.fetch(@check.verdict)
        head, *rest = sentences(hints)
        Text.wrap(head, width).map { |line| palette.bold(palette.public_send(style, line)) } + table +
          rest.flat_map { |text| Text.wrap(text, width).map { |line| palette.dim(line) } }
      end

      # The JSON object. Estimates are in ns; runs_avoided is a number of GC runs.
      #: () -> Hash[String, untyped]
      def json
        actual = %i[saving own gc].to_h { |name| ["#{name}_ns", JsonValues.estimate(@check[name])] }
        { "place" => @check.prediction.place, "base" => @base, "side" => @side,
          "weight" => @check.prediction.weight.to_s, "verdict" => @check.verdict.to_s,
          "reason" => @check.reason, "noise" => @check.noise.to_s, "runs" => @check.sides,
          "a_ns" => @check.before, "b_ns" => @check.after, "elsewhere" => @check.elsewhere,
          "predicted" => GCCostJson.prediction(@check.prediction),
          "actual" => actual.merge("runs_avoided" => JsonValues.estimate(@check.runs)) }
      end

      private

      def sentences(hints)
        saving, predicted = @check.saving, @check.prediction.saving
        head = "#{VERDICTS.fetch(@check.verdict).sub(/\A./, &:upcase)}: " \
               "removing #{@check.prediction.place} was to save #{duration(predicted.point)} " \
               "(#{range(predicted)}) and saved #{duration(saving.point)} (#{range(saving)})"
        [head, *@check.reason&.then { |reason| "undecided: #{reason}" }, doubt(hints), what]
      end

      # Lines of the table: quantity, predicted value, measured value.
      def table
        predicted = @check.prediction
        rows = [["saving", predicted.saving, @check.saving], ["own time", predicted.own, @check.own],
                ["collection", predicted.gc, @check.gc]]
        rows = rows.map { |name, *both| [name, *both.map { |one| with_range(one) }] }
        rows << ["GC runs avoided", runs(predicted.runs), @check.runs ? runs(@check.runs) : Figures::NOTHING]
        cells = [["", "predicted", "what happened"], *rows]
        widths = Array.new(3) { |at| cells.map { |row| row[at].size }.max }
        cells.map { |row| "  #{row.zip(widths).map { |cell, width| cell.ljust(width) }.join("  ")}".rstrip }
      end

      def doubt(hints)
        case @check.noise
        when :one_run
          "one run a side is not enough: #{doubt_of_one_run} (#{hints.sides} name more)"
        when :between_runs
          runs = @check.sides.uniq.join(" and ")
          "doubt of what happened: what lies between #{runs} runs of each side (Welch)"
        else "what happened: as compare measured it, in #{Units.things(@check.sides.first.to_i, "pair")}"
        end
      end

      def doubt_of_one_run
        return "nothing tells how runs differ" unless @check.elsewhere

        "the time outside the place, where nothing was to change, differs by #{percent(@check.elsewhere - 1)}; " \
          "so much of the whole, and #{Figures.share(Analyse::PredictionCheck::ONE_RUN)} at least, is doubted"
      end

      def what
        clock = @check.prediction.weight == :cpu ? "CPU" : "wall"
        "the verdict is of the saving alone; #{clock} time of a run, all threads added up: " \
          "#{@base} #{duration(@check.before)}, #{@side} #{duration(@check.after)}; " \
          "the prediction is a model (doc/gc-cost.md)"
      end

      def with_range(estimate)
        return Figures::NOTHING unless estimate

        point, low, high = [estimate.point, estimate.low, estimate.high].map { |ns| ns && duration(ns) }
        estimate.interval? ? "#{point} (#{low} … #{high})" : point
      end

      def runs(estimate)
        point, low, high = [estimate.point, estimate.low, estimate.high].map do |value|
          value && Figures.value(value.round(1), "count", figures: 3).sub(/\A-/, "−")
        end
        low && low != high ? "#{point} (#{low} … #{high})" : point
      end

      # A duration, which may be negative: a saving is negative when the run got longer.
      def duration(ns) = Figures.value(ns, "ns", figures: 3).sub(/\A-/, "−")

      def range(estimate)
        return "one run each" unless estimate.interval?

        level = estimate.level ? "#{Figures.share(estimate.level)}: " : "roughly "
        "#{level}#{duration(estimate.low)} … #{duration(estimate.high)}"
      end

      def percent(part) = "#{part.negative? ? "−" : "+"}#{format("%.1f", part.abs * 100)}%"
    end
  end
end
