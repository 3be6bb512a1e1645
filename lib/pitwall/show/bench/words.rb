# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/show/compare/effect_words"
require "pitwall/show/terminal/figures"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The cells of `pitwall bench`'s tables, which text and Markdown share.
    class BenchWords
      # What is said of a whole command, as far as it was measured.
      COMMAND = %w[wall cpu user system gc_time max_rss minor_faults major_faults voluntary_switches involuntary_switches].freeze
      # Counts that are all the same may differ by what a division leaves.
      ROUNDING = 1e-9
      private_constant :COMMAND, :ROUNDING

      #: (Analyse::BenchReport) -> void
      def initialize(report)
        @report = report
      end

      # @return [Array<Analyse::BenchSummary::Case>] cases that repeat a block of code
      #: () -> Array[Analyse::BenchSummary::Case]
      def cases = @report.summaries.reject(&:command)

      # @return [Array<Analyse::BenchSummary::Case>] whole commands
      #: () -> Array[Analyse::BenchSummary::Case]
      def commands = @report.summaries.select(&:command)

      #: () -> String
      def title
        what, one, more = commands.any? && cases.empty? ? %w[command run runs] : %w[case process processes]
        numbers = @report.summaries.map(&:processes).compact.minmax.uniq
        runs = "#{numbers.map { |number| Units.count(number) }.join(" … ")} #{numbers == [1] ? one : more} each" if numbers.any?
        [@report.name, Units.things(@report.summaries.size, what), runs, @report.duration_ns && Units.duration(@report.duration_ns)].compact.join(" · ")
      end

      # "99% interval", where all estimates have that level.
      #: () -> String
      def interval_head
        levels = @report.summaries.filter_map { |one| EffectWords.level(one.time) if one.time&.interval? }.uniq
        levels.size == 1 ? "#{levels.first} interval" : "interval"
      end

      # Heads and rows: name, iterations a second with their doubt, time and its interval.
      #: () -> [Array[String], Array[Array[String]]]
      def speed
        rows = cases.map do |one|
          rate = [Figures.rate(one.rate&.point), *(Figures.doubt(one.rate) if Figures.known?(one.rate))].join(" ")
          [one.name, rate, time(one.time&.point), one.time&.interval? ? interval(one.time, "ns") : "none"]
        end
        [["case", "iterations", "time each", interval_head], rows]
      end

      # Heads and rows: name, memory, first run, CPU; all of one iteration. What wasn't measured has no column.
      #: () -> [Array[String], Array[Array[String]]]
      def memory
        columns = { "objects" => ->(one) { value(one, "objects") }, "bytes" => ->(one) { value(one, "bytes") },
                    "GC runs" => ->(one) { value(one, "gc_runs") }, "GC time" => ->(one) { one.gc_share && Figures.rough(one.gc_share) },
                    "first run" => ->(one) { first(one) },
                    "CPU" => ->(one) { one.cpu_share && Figures.share(one.cpu_share.round(3)) } }
        columns = columns.select { |_, cell| cases.any? { |one| cell.(one) } }
        return [[], []] if columns.empty?

        [["each", *columns.keys], cases.map { |one| [one.name, *columns.values.map { |cell| cell.(one).to_s }] }]
      end

      # Heads and rows of one command: what was measured, best and median.
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

      # Heads and rows of cases held against each other, the fastest first.
      # @return [Array(Array<String>, Array<Array<String>>, Array<Effect, nil>)]
      #: (String, Array[Analyse::BenchSummary::Ranked]) -> [Array[String], Array[Array[String]], Array[Analyse::Effect?]]
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
        [["#{title}#{", " unless title.empty?}fastest first", "time each", "change", "interval", "verdict"], rows, effects]
      end

      # What is undecided between cases, and why.
      #: () -> Array[String]
      def undecided
        found = @report.rankings.flat_map(&:last).filter_map(&:effect).select { |effect| EffectWords.verdict(effect) == :undecided }
        found.map do |effect|
          seen = effect.smallest_detectable && "an effect of #{Figures.rough(effect.smallest_detectable)} would have been found 4 times in 5"
          "#{effect.side} against #{effect.base}: undecided#{"; #{effect.reason || seen}" if effect.reason || seen}"
        end
      end

      # What is known of its Ruby and code.
      #: () -> Hash[String, String]
      def facts = @report.facts.to_h.to_h { |name, value| [name.to_s, value.to_s] }

      # How it was made.
      #: () -> String
      def made = [*Provenance.settings(@report.settings), *Provenance.losses(@report.losses)].join(" · ")

      private

      def time(value) = Figures.value(value, "ns")

      def interval(estimate, unit)
        return "" unless estimate&.interval?

        "#{Figures.value(estimate.low, unit)} … #{Figures.value(estimate.high, unit)}"
      end

      # Exact counts stand alone, others with their doubt; where that is larger than the number, the bound is what is known.
      def value(one, metric)
        value = one[:values][metric]
        return unless value&.estimate

        estimate = value.estimate
        return Figures.value(estimate.point, value.unit) if value.exact || !estimate.interval? || estimate.high - estimate.low <= ROUNDING * estimate.point.abs
        return "≤ #{Figures.value(estimate.high, value.unit, figures: 2)}" if estimate.high - estimate.low > 2 * estimate.point

        "#{Figures.value(estimate.point, value.unit)} #{Figures.doubt(estimate)}"
      end

      def first(one)
        return unless one.first_ns

        "#{time(one.first_ns)}#{" (×#{format(one.first_ratio >= 9.95 ? "%.0f" : "%.1f", one.first_ratio)})" if one.first_ratio}"
      end
    end
  end
end
