# frozen_string_literal: true

require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Lines of code by their cost: own time plus the GC time charged to them.
    # A prediction tells how much time removing one line would save.
    class GCCostView
      MODEL = "own: measured by samples, collection left out · GC: a model: " \
              "each run's time divided among those that allocated since the run before"
      STACKLESS = "without stacks, what a line's callees allocate is charged to the callees only"
      DISTURBED = "every object was followed in the run that was timed, which slows lines that allocate: " \
                  "own times are too long; name a recording without allocations as well"
      NO_SAMPLES = "no samples were taken, so own times are missing: " \
                   "name a recording of the same work by pitwall profile as well"
      LIMIT = 20 # rows of the table, by default
      CLASSES = 2 # classes named in a row, at most
      # Columns left out on a narrow terminal: bytes, then objects.
      GIVING_WAY = [4, 3].freeze
      private_constant :LIMIT, :CLASSES, :GIVING_WAY, :MODEL, :DISTURBED, :NO_SAMPLES

      # @param hints [Views::Hints] options that notes suggest
      #: (width: Integer, palette: untyped, location: Location, hints: untyped) -> void
      def initialize(width:, palette:, location:, hints:)
        @hints = hints
        @width = width
        @palette = palette
        @location = location
      end

      # The view's lines.
      # @param prediction [Analyse::GCPrediction, nil] shown first
      #: (Analyse::GCCost, ?prediction: Analyse::GCPrediction?, ?limit: Integer?) -> Array[String]
      def lines(cost, prediction: nil, limit: nil)
        return Text.wrap("no places of allocation were recorded: #{@hints.places}", @width) unless cost.sites?

        rows = cost.rows
        shown = rows.first(limit || LIMIT)
        heads = ["together", cost.weight == :cpu ? "own cpu" : "own", "GC", "objects", "bytes", "class, line"]
        table = Table.new(heads: heads, width: @width, palette: @palette, location: @location, giving_way: GIVING_WAY)
        [*(prediction ? [*prediction(prediction), ""] : []), *notes(cost), "",
         *table.lines(shown.map { |row| row(row, cost.samples?) }), *rest(rows, shown)]
      end

      private

      def notes(cost)
        notes = [charged(cost), MODEL]
        notes << "objects were sampled; their numbers are estimates" if cost.sampled?
        notes << STACKLESS unless cost.stacks?
        notes << DISTURBED if cost.disturbed?
        notes << NO_SAMPLES unless cost.samples?
        notes.flat_map.with_index do |text, at|
          Text.wrap(text, @width).map { |line| at.zero? ? line : @palette.dim(line) }
        end
      end

      def charged(cost)
        "garbage collection took #{Units.duration(cost.gc_ns)} of #{Units.duration(cost.whole_ns)} " \
          "#{clock(cost.weight)} time; the lines below are charged #{Units.duration(cost.charged_ns)} of it"
      end

      def row(row, timed)
        classes = row.classes.first(CLASSES).join(", ") + (row.classes.size > CLASSES ? "…" : "")
        times = [row.together_ns, (row.own_ns if timed), row.gc_ns].map { |ns| ns ? Units.duration(ns) : "" }
        Table::Row.new(numbers: [*times, Units.count(row.objects), Units.bytes(row.bytes)],
                       name: classes.empty? ? "–" : classes,
                       place: row.line.zero? ? ["(no line)", 0] : [row.path, row.line])
      end

      def rest(rows, shown)
        return [] if rows.size == shown.size

        [@palette.dim("#{Units.duration(rows.drop(shown.size).sum(&:together_ns))} in " \
                      "#{Units.things(rows.size - shown.size, "more line")} (#{@hints.rows(rows.size)})")]
      end

      def prediction(prediction)
        saving = prediction.saving
        share = Units.percent(saving.point.round, [prediction.whole_ns, 1].max)
        head = "Removing #{prediction.place} would save #{duration(saving.point)} (#{range(saving)}), " \
               "#{share} of the #{clock(prediction.weight)} time. A model, not a measurement."
        parts = [own(prediction),
                 "collection: #{duration(prediction.gc.point)} (#{range(prediction.gc)}): #{runs(prediction)}",
                 "no longer allocated: #{Units.things(prediction.objects, "object")}, #{Units.bytes(prediction.bytes)}",
                 "doubt (standard deviations): #{doubts(prediction)}"]
        lines = parts.flat_map { |text| Text.wrap(text, @width - 4, indent: "    ") }
        Text.wrap(head, @width).map { |line| @palette.bold(line) } + lines.map { |line| "  #{line}" }
      end

      def own(prediction)
        unless prediction.own
          return "own time: not known, no samples were taken; what is said is of collection only"
        end

        "own time, with what it calls: #{duration(prediction.own.point)} (#{range(prediction.own)})"
      end

      def runs(prediction)
        avoided = Figures.value(prediction.runs.point, "count", figures: 3)
        "#{avoided} of #{Units.things(prediction.all_runs, "run")} × #{Units.duration(prediction.cost_ns)}"
      end

      def doubts(prediction)
        words = { samples: "samples", collections: "which runs", followed: "sampled objects",
                  heap: "the heap's size", model: "the model" }
        texts = words.filter_map do |name, word|
          ns = prediction.doubts[name].round
          "#{word} #{Units.duration(ns)}" if ns.positive?
        end
        texts.join(", ")
      end

      def clock(weight) = weight == :cpu ? "CPU" : "wall"

      def duration(ns) = Units.duration(ns.round)

      def range(estimate) = "#{Figures.share(estimate.level)}: #{duration(estimate.low)} … #{duration(estimate.high)}"
    end
  end
end
