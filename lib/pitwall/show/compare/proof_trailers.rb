# frozen_string_literal: true

require "pitwall/record/proof"
require "pitwall/show/compare/provenance"
require "pitwall/show/measured/effect_words"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # A comparison as trailers of a commit message. Record::Proof reads them again.
    class ProofTrailers
      # Counts that are a property of the code. Others (page faults, GC runs…) depend on the machine.
      COUNTS = %w[objects bytes instructions fs_calls retained retained_bytes].freeze
      private_constant :COUNTS

      # The effects that a proof claims: the headline of every case, and counts that changed.
      #: (Analyse::ComparisonReport) -> Array[Analyse::Effect]
      def self.claimed(report)
        counts = report.other_effects.select do |effect|
          COUNTS.include?(effect.metric) && !effect.below_margin &&
            !%i[same undecided].include?(EffectWords.verdict(effect))
        end
        (report.headline + counts).sort_by.with_index { |effect, at| [report.cases.index(effect.name), at] }
      end

      # The environment in a line: "ruby 3.4.1 (…); 2 cores, AMD EPYC 7763, kernel 6.1.0; pitwall 0.1.0".
      #: (Analyse::ComparisonReport, String?) -> String
      def self.environment(report, version)
        rubies = report.sides.filter_map { |side| side.facts.to_h["ruby"] }.uniq
        [rubies.join(" / "), Provenance.host(report.host), ("pitwall #{version}" if version)]
          .compact.reject(&:empty?).map { |text| Text.safe(text) }.join("; ")
      end

      # @param repeat what the measurement says about repeating it, see CLI::Compare
      # @param version the Pitwall that measured
      #: (Analyse::ComparisonReport, Hash[String, untyped], version: String?) -> void
      def initialize(report, repeat, version:)
        @report = report
        @repeat = repeat
        @version = version
      end

      # [key, value] of each trailer.
      #: () -> Array[[String, String]]
      def pairs
        benchmark = @repeat["benchmark"]&.values_at("path", "blob")
        rows = self.class.claimed(@report).map { |effect| ["Effect", effect(effect)] }
        rows << ["Trees", @repeat["trees"].join(" ")]
        rows << ["Benchmark", benchmark.join(" ")] if benchmark
        rows << ["Environment", self.class.environment(@report, @version)]
        rows << ["Command", Text.line(@repeat["command"])]
        rows.map { |key, text| ["#{Record::Proof::KEY}#{key}", text] }
      end

      #: () -> String
      def to_s = pairs.map { |pair| pair.join(": ") }.join("\n")

      private

      def effect(effect)
        values = [effect.a, effect.b].map { |value| Figures.value(value, effect.unit) }.join(" → ")
        parts = ["#{values}#{change(effect)}", *("exact" if effect.exact), Units.things(effect.pairs.to_i, "pair"),
                 verdict(effect)]
        "#{Text.line(effect.name)}: #{effect.metric} #{parts.join(", ")}"
      end

      def change(effect)
        return "" unless Figures.sized?(effect.ratio)
        return ", #{Figures.change(effect.ratio)}" if effect.exact

        ", #{Figures.change(effect.ratio)} (#{EffectWords.level(effect.ratio)} interval #{Figures.range(effect.ratio)})"
      end

      def verdict(effect)
        word = EffectWords.verdict(effect).to_s
        margin = Figures.share(effect.margin) if effect.margin
        return "#{word} (below #{margin})" if effect.below_margin && word != "undecided"

        word == "same" && margin && !effect.exact ? "#{word} (within #{margin})" : word
      end
    end
  end
end
