# frozen_string_literal: true

require "pitwall/show/compare/commits_view"
require "pitwall/show/compare/search_view"
require "pitwall/show/compare/words"
require "pitwall/show/terminal/distribution"
require "pitwall/show/measured/growth_view"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/plain"
require "pitwall/show/gc/prediction_check_view"
require "pitwall/show/compare/why_text"

module Pitwall
  module Show
    # The report of `pitwall compare` as Markdown, for a pull request: the verdict, one table, folded details, and the
    # command that repeats the comparison.
    class CompareMarkdown
      # Columns of plots and distributions. A pull request scrolls wider blocks of code.
      DRAWN = 90
      # Cases whose distributions are drawn, at most.
      CASES = 12
      private_constant :DRAWN, :CASES

      # @param hints [Views::Hints] options that notes suggest
      #: (Analyse::ComparisonReport, hints: untyped) -> void
      def initialize(report, hints:)
        @report = report
        @hints = hints
        @words = CompareWords.new(report, hints: hints)
      end

      # The report, without a newline at its end.
      #: () -> String
      def to_s
        view = CommitsView if @report.commits
        view = SearchView if @report.search
        head = view ? [view.new(@report, hints: @hints).markdown] : [verdicts, table(@report.headline)]
        parts = [*head, *predictions, alarms, Provenance.quoted(@report),
                 Markdown.details("Counters, distributions and how it was made", details),
                 Provenance.block(@report.command)]
        parts.reject(&:empty?).map { |lines| lines.join("\n") }.join("\n\n")
      end

      private

      def verdicts
        lines = @words.verdicts.map do |claim, figures, _|
          figures ? "**#{Markdown.text(claim)}**: #{Markdown.text(figures)}" : "**#{Markdown.text(claim)}**"
        end
        lines += @words.undecided.map { |text| Markdown.text(text) }
        (lines + @words.gate.map { |text, _| "**#{Markdown.text(text)}**" }).flat_map { |line| [line, ""] }[0..-2]
      end

      def table(effects)
        return [] if effects.empty?

        ends = %i[base side].map do |end_|
          effects.map(&end_).uniq.then { |names| names.size == 1 ? names.first : end_.to_s }
        end
        metrics = effects.any? { |effect| effect.metric != @report.metric }
        heads = ["case", *("side" if @words.several?), *("metric" if metrics), *ends, "change", "interval", "verdict"]
        words = heads.size - 5
        rows = effects.map do |effect|
          first = [Markdown.code(effect.name), *(Markdown.text(effect.side) if @words.several?),
                   *(EffectWords.title(effect.metric) if metrics)]
          first + figures(effect) + [Markdown.text(EffectWords.short(effect))]
        end
        Markdown.table(heads.map { |head| Markdown.text(head) }, rows, left: [*0...words, heads.size - 1])
      end

      def figures(effect)
        ends = [effect.a, effect.b].map { |value| Figures.value(value, effect.unit) }
        return ends + [effect.a == effect.b ? "" : Figures.change(effect.ratio), ""] if effect.exact
        return ends + ["", "none"] unless Figures.sized?(effect.ratio)

        ends + [Figures.change(effect.ratio), "#{Figures.range(effect.ratio)} (#{EffectWords.level(effect.ratio)})"]
      end

      # A false alarm of the control, which is not folded.
      def alarms = @words.control.select { |_, style| style != :dim }.map { |text, _| "> #{Markdown.text(text)}" }

      def details
        shown, undecided, same = @words.beside
        sized, unsized = undecided.partition { |effect| Figures.sized?(effect.ratio) && !effect.ratio.exact? }
        rest = { "Undecided" => @words.partly(unsized), "Same" => @words.list(same) }.flat_map do |word, list|
          list.empty? ? [] : ["#{word}: #{Markdown.text(list)}", ""]
        end
        control = @words.control.select { |_, style| style == :dim }.map { |text, _| Markdown.text(text) }
        parts = [table(shown + sized), rest[0..-2].to_a, drawings, growths, why, control, made].reject(&:empty?)
        parts.flat_map { |lines| [*lines, ""] }[0..-2]
      end

      def drawings
        drawing = Distribution.new(width: DRAWN, palette: Plain)
        unit = Record::METRICS[@report.metric]&.unit || "ns"
        names = @report.headline.map(&:name).uniq.first(CASES)
        lines = names.flat_map do |name|
          drawn = drawing.lines(@report.medians(name), unit: unit)
          drawn.empty? ? [] : [Text.shorten(name, DRAWN), *drawn]
        end
        return [] if lines.empty?

        ["Median of each process, #{EffectWords.title(@report.metric)}:", "", *Markdown.block(lines)]
      end

      def predictions
        base = @report.sides.first&.name.to_s
        @report.predictions.to_h.map do |side, check|
          view = PredictionCheckView.new(check, base: base, side: side)
          Markdown.block(view.lines(width: DRAWN, palette: Plain, hints: @hints))
        end
      end

      def why
        base = @report.sides.first&.name.to_s
        lines = @report.why.to_h.flat_map do |side, result|
          WhyText.new(width: DRAWN, palette: Plain, hints: @hints).lines(result, base: base, side: side)
        end
        lines.empty? ? [] : Markdown.block(lines)
      end

      def growths
        view = GrowthView.new(width: DRAWN, palette: Plain)
        @report.growths.to_a.flat_map { |sweep| [*Markdown.block(view.lines(sweep)), ""] }[0..-2].to_a
      end

      def made
        facts = { "made of" => @words.made }.merge(@words.sides, { "host" => Provenance.host(@report.host) })
        facts = facts.reject { |_, text| text.empty? }
        facts.map { |name, text| "- #{Markdown.text(name)}: #{Markdown.text(text)}" }
      end
    end
  end
end
