# frozen_string_literal: true

require "pitwall/show/bench/json"
require "pitwall/show/bench/words"
require "pitwall/show/compare/json"
require "pitwall/show/compare/words"
require "pitwall/show/measured/growth_view"
require "pitwall/show/compare/provenance"
require "pitwall/show/page/page"
require "pitwall/show/compare/why_text"

module Pitwall
  module Show
    # The page of what `bench` or `compare` measured: verdicts with their intervals, where each process lay, how time
    # grows with N. Numbers for drawing are those of the JSON views; words and cells are those of the text, so that page
    # and terminal say the same.
    class MeasuredPage
      # Two recordings, method by method.
      # @param requests what became of requests, as RequestChangeView#parts has it
      # @param hints [Views::Hints] options that notes suggest
      # @param structure [StructureView, nil] the change of call paths
      #: (Analyse::ProfileChange::Result, base: String, side: String, hints: untyped,
      #:  ?requests: Hash[String, untyped], ?structure: StructureView?) -> String
      def self.of_change(change, base:, side:, hints:, requests: {}, structure: nil)
        of_parts([why(change, base, side, hints)], base: base, side: side, structure: structure, **requests)
      end

      # Two recordings of allocations, place by place.
      #: (Analyse::AllocationChange, base: String, side: String, **untyped) -> String
      def self.of_objects(change, base:, side:, **options)
        parts = AllocationChangeView.new(change, base: base, side: side, **options).parts
        of_parts([parts], base: base, side: side, title: "Objects")
      end

      # @api private
      #: (Array[Hash[String, untyped]], base: String, side: String, ?title: String?, **untyped) -> String
      def self.of_parts(why, base:, side:, title: nil, verdicts: [], tables: [], structure: nil)
        data = PageData.new(title: "#{side} against #{base} · Pitwall")
        data.object = { "schema" => "pitwall/page-1", "kind" => "measured", "title" => "#{side} against #{base}",
                        "facts" => [], "verdicts" => verdicts,
                        "undecided" => [], "tables" => tables, "headline" => [], "beside" => [], "samples" => [],
                        "growth" => [], "warnings" => [], "made" => [],
                        "why" => why, "why_title" => title, "version" => VERSION }
        data.object["structure"] = structure.page(data) if structure && structure.reason.nil?
        Page.new(data).to_s
      end

      # @api private
      #: (Analyse::ProfileChange::Result, String, String, untyped) -> Hash[String, untyped]
      def self.why(change, base, side, hints)
        WhyText.new(width: 1 << 16, palette: Plain, hints: hints).parts(change, base: base, side: side)
      end

      # @param hints [Views::Hints] options that notes suggest
      #: ((Analyse::BenchReport | Analyse::ComparisonReport), hints: untyped) -> void
      def initialize(report, hints:)
        @report = report
        @hints = hints
        @compare = report.is_a?(Analyse::ComparisonReport)
      end

      #: () -> String
      def to_s = Page.new(data).to_s

      # @api private
      #: () -> PageData
      def data
        data = PageData.new(title: "#{title} · Pitwall")
        data.object = { "schema" => "pitwall/page-1", "kind" => "measured", "title" => title, "facts" => facts,
                        **(@compare ? compared : benched),
                        "growth" => growths, "warnings" => warnings, "made" => made, "command" => @report.command,
                        "version" => VERSION }
        data
      end

      private

      def words = @words ||= @compare ? CompareWords.new(@report, hints: @hints) : BenchWords.new(@report)

      def title
        return @report.name.to_s.empty? ? "Benchmark" : @report.name.to_s unless @compare

        base, *others = @report.sides.map(&:name)
        "#{others.join(", ")} against #{base}"
      end

      def facts
        cases = @report.respond_to?(:cases) ? @report.cases : @report.summaries
        [Units.things(cases.size, "case"), @report.duration_ns && Units.duration(@report.duration_ns)].compact
      end

      def compared
        told, undecided, same = words.beside
        verdicts = words.verdicts.map do |claim, figures, style|
          { "claim" => claim, "figures" => figures, "style" => style }
        end
        { "verdicts" => verdicts, "undecided" => words.undecided,
          "control" => words.control.map { |text, style| { "text" => text, "style" => style } },
          "metric" => EffectWords.title(@report.metric), "headline" => effects(@report.headline),
          "beside" => effects(told + undecided), "same" => words.list(same), "several" => words.several?,
          "samples" => CompareJson.new(@report).body.fetch("samples"), "why" => why }
      end

      def benched
        { "verdicts" => [], "undecided" => words.undecided, "metric" => "wall time", "tables" => tables,
          "headline" => effects(@report.effects.to_a), "beside" => [], "same" => "", "several" => true,
          "samples" => BenchJson.new(@report).body.fetch("samples") }
      end

      def tables
        commands = words.commands.map do |one|
          heads, rows = words.command(one)
          [[one.name, *heads.drop(1)], rows]
        end
        tables = [words.speed, words.memory, words.caches, *commands]
        tables.reject { |heads, rows| heads.empty? || rows.empty? }
              .map { |heads, rows| { "heads" => heads, "rows" => rows } }
      end

      def effects(list)
        list.map do |effect|
          sized = Figures.sized?(effect.ratio)
          changed = sized && !(effect.exact && effect.a == effect.b)
          JsonValues.effect(effect).merge("title" => EffectWords.title(effect.metric),
                                          "subject" => @compare ? words.subject(effect) : effect.name,
                                          "a_text" => Figures.value(effect.a, effect.unit),
                                          "b_text" => Figures.value(effect.b, effect.unit),
                                          "change" => changed ? Figures.change(effect.ratio) : "",
                                          "range" => sized && !effect.exact ? Figures.range(effect.ratio) : "",
                                          "level" => EffectWords.level(effect.ratio),
                                          "words" => EffectWords.short(effect), "style" => EffectWords.style(effect))
        end
      end

      def growths
        JsonValues.growths(@report.growths).zip(@report.growths.to_a).map do |growth, sweep|
          heads, rows = GrowthView.cells(sweep)
          growth.merge("heads" => heads, "rows" => rows)
        end
      end

      def warnings
        texts = @report.warnings.to_a.map do |warning|
          { "text" => Provenance.about(warning), "hint" => warning.hint.to_s }
        end
        [*Provenance.interrupted(@report)].map { |text| { "text" => text, "hint" => "" } } + texts
      end

      def why
        base = @report.sides.first&.name
        @report.why.to_h.map { |side, result| MeasuredPage.why(result, base, side, @hints) }
      end

      def made
        facts = { "made of" => words.made, **(@compare ? words.sides : words.facts),
                  "host" => Provenance.host(@report.host) }
        facts.map { |name, value| [name, value.to_s] }.reject { |_, value| value.empty? }
      end
    end
  end
end
