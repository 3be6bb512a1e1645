# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/show/measured/effect_words"
require "pitwall/show/terminal/figures"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The cells of the tables of `pitwall bench`, shared by text and Markdown.
    class BenchWords
      # Metrics of a whole command, in the order of the table.
      COMMAND = %w[wall cpu user system gc_time max_rss minor_faults major_faults
                   voluntary_switches involuntary_switches].freeze
      # Relative width of an interval that still counts as exact: dividing equal counts leaves rounding errors.
      ROUNDING = 1e-9
      private_constant :COMMAND, :ROUNDING

      #: (Analyse::BenchReport) -> void
      def initialize(report)
        @report = report
      end

      # Cases that repeat a block of code.
      #: () -> Array[Analyse::BenchSummary::Case]
      def cases = @report.summaries.reject(&:command)

      # Cases that are whole commands.
      #: () -> Array[Analyse::BenchSummary::Case]
      def commands = @report.summaries.select(&:command)

      # The headline: "words.rb · 3 cases · 8 processes each · 12.3 s"
      #: () -> String
      def title
        what, one, more = commands.any? && cases.empty? ? %w[command run runs] : %w[case process processes]
        numbers = @report.summaries.map(&:processes).compact.minmax.uniq
        if numbers.any?
          runs = "#{numbers.map { |number| Units.count(number) }.join(" … ")} #{numbers == [1] ? one : more} each"
        end

        duration = @report.duration_ns && Units.duration(@report.duration_ns)
        [@report.name, Units.things(@report.summaries.size, what), runs, duration].compact.join(" · ")
      end

      # Head of the interval's column: "99% interval" when all estimates have the same level, else "interval".
      #: () -> String
      def interval_head
        levels = @report.summaries.filter_map { |one| EffectWords.level(one.time) if one.time&.interval? }.uniq
        levels.size == 1 ? "#{levels.first} interval" : "interval"
      end

      # Heads and rows of the table of speed: name, iterations per second, time of one iteration with its interval.
      #: () -> [Array[String], Array[Array[String]]]
      def speed
        rows = cases.map do |one|
          rate = [Figures.rate(one.rate&.point), *(Figures.doubt(one.rate) if Figures.known?(one.rate))].join(" ")
          [one.name, rate, time(one.time&.point), one.time&.interval? ? interval(one.time, "ns") : "none"]
        end
        [["case", "iterations", "time each", interval_head], rows]
      end

      # Heads and rows of the table of memory: name, memory, GC, first run, CPU time, each for one iteration.
      # Omits columns that were not measured.
      #: () -> [Array[String], Array[Array[String]]]
      def memory
        columns = { "objects" => ->(one) { value(one, "objects") }, "bytes" => ->(one) { value(one, "bytes") },
                    "GC runs" => ->(one) { value(one, "gc_runs") },
                    "GC time" => ->(one) { one.gc_share && Figures.rough(one.gc_share) },
                    "first run" => ->(one) { first(one) },
                    "CPU" => ->(one) { one.cpu_share && Figures.share(one.cpu_share.round(3)) } }
        columns = columns.select { |_, cell| cases.any? { |one| cell.(one) } }
        return [[], []] if columns.empty?

        [["each", *columns.keys], cases.map { |one| [one.name, *columns.values.map { |cell| cell.(one).to_s }] }]
      end

      # Heads and rows of the table of counters of the VM's caches, each for one iteration. A counter that increased in
      # no case has no column.
      #: () -> [Array[String], Array[Array[String]]]
      def caches
        counters = Record::VM_COUNTERS.each_value.select do |counter|
          cases.any? { |one| one[:values][counter.name]&.estimate&.point.to_f.positive? }
        end
        return [[], []] if counters.empty?

        [["caches, each", *counters.map { |counter| counter.jit ? "#{counter.jit} #{counter.short}" : counter.short }],
         cases.map { |one| [one.name, *counters.map { |counter| value(one, counter.name).to_s }] }]
      end

      # Heads and rows of one command's table: metric, best value, median, interval of the median.
      #: (Analyse::BenchSummary::Case) -> [Array[String], Array[Array[String]]]
      def command(one)
        metrics = (COMMAND & one[:values].keys) + (one[:values].keys - COMMAND)
        rows = metrics.map do |metric|
          value = one[:values].fetch(metric)
          point = value.estimate&.point
          [EffectWords.title(metric), Figures.value(value.best, value.unit), Figures.value(point, value.unit),
           value.exact ? "exact" : interval(value.estimate, value.unit)]
        end
        [["", "best", "median", interval_head], rows]
      end

      # Heads and rows of compared cases, the fastest first; and the effect of each row, nil for the reference.
      #: (String, Array[Analyse::BenchSummary::Ranked])
      #:   -> [Array[String], Array[Array[String]], Array[Analyse::Effect?]]
      def ranking(title, ranked)
        effects = ranked.map(&:effect)
        rows = ranked.map do |row|
          effect = row.effect
          cells = [row.case.name, time(row.case.time&.point)]
          next cells + ["", "", "reference"] unless effect

          known = Figures.sized?(effect.ratio)
          range = known ? "#{Figures.range(effect.ratio)} (#{EffectWords.level(effect.ratio)})" : "none"
          cells + [known ? Figures.change(effect.ratio) : "", range, EffectWords.short(effect)]
        end
        head = "#{title}#{", " unless title.empty?}fastest first"
        [[head, "time each", "change", "interval", "verdict"], rows, effects]
      end

      # A sentence for each undecided comparison of two cases, with the reason.
      #: () -> Array[String]
      def undecided
        effects = @report.rankings.flat_map(&:last).filter_map(&:effect)
        effects.select { |effect| EffectWords.verdict(effect) == :undecided }.map do |effect|
          size = effect.smallest_detectable
          seen = size && "an effect of #{Figures.rough(size)} would have been found 4 times in 5"
          "#{effect.side} against #{effect.base}: undecided#{"; #{effect.reason || seen}" if effect.reason || seen}"
        end
      end

      # Facts about the measured Ruby and code: name → value.
      #: () -> Hash[String, String]
      def facts
        facts = @report.facts.to_h.to_h { |name, value| [name.to_s, value.to_s] }
        missing = @report.not_counted
        missing.empty? ? facts : facts.merge("not counted by this Ruby" => missing.join(", "))
      end

      # The settings of the measurement, and its losses.
      #: () -> String
      def made = [*Provenance.settings(@report.settings), *Provenance.losses(@report.losses)].join(" · ")

      private

      def time(value) = Figures.value(value, "ns")

      def interval(estimate, unit)
        return "" unless estimate&.interval?

        "#{Figures.value(estimate.low, unit)} … #{Figures.value(estimate.high, unit)}"
      end

      # A metric's value. Exact counts are shown without an interval, others with half of its width: "81.3 ±1.2%".
      # When the interval is wider than twice the value, only its upper bound is shown: "≤ 12".
      def value(one, metric)
        value = one[:values][metric]
        return unless value&.estimate

        estimate = value.estimate
        if value.exact || !estimate.interval? || estimate.high - estimate.low <= ROUNDING * estimate.point.abs
          return Figures.value(estimate.point, value.unit)
        end

        if estimate.high - estimate.low > 2 * estimate.point
          return "≤ #{Figures.value(estimate.high, value.unit, figures: 2)}"
        end

        "#{Figures.value(estimate.point, value.unit)} #{Figures.doubt(estimate)}"
      end

      def first(one)
        return unless one.first_ns

        ratio = one.first_ratio
        factor = " (×#{format(ratio >= 9.95 ? "%.0f" : "%.1f", ratio)})" if ratio
        "#{time(one.first_ns)}#{factor}"
      end
    end
  end
end
