# frozen_string_literal: true

require "pitwall/show/terminal/ascii"
require "pitwall/show/terminal/columns"
require "pitwall/show/compare/commits_view"
require "pitwall/show/compare/search_view"
require "pitwall/show/compare/words"
require "pitwall/show/terminal/distribution"
require "pitwall/show/measured/growth_view"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/plain"
require "pitwall/show/gc/prediction_check_view"
require "pitwall/show/compare/why_text"

module Pitwall
  module Show
    # The report of `pitwall compare` as text: verdict, figures, distributions, counters, and the command that repeats
    # the comparison. Without details the text shows only changes and warnings, so that a few cases fit a screen.
    class CompareText
      # Smallest width: fewer columns don't hold the numbers.
      NARROWEST = 40
      # Cases whose distributions are drawn, at most.
      DRAWN = 12
      # Columns of a side's name, at most.
      NAME = 14
      # Columns of a metric's name, at least.
      METRIC = 28
      private_constant :DRAWN, :NAME, :METRIC

      # @param unicode [Boolean] whether the terminal shows more than ASCII
      # @param details [Boolean] whether all details are shown
      # @param hints [Views::Hints] options that notes suggest
      #: (Analyse::ComparisonReport, hints: untyped, ?width: Integer, ?palette: untyped, ?unicode: bool,
      #:  ?details: bool) -> void
      def initialize(report, hints:, width: 100, palette: Plain, unicode: true, details: true)
        @report = report
        @details = details
        @hints = hints
        @words = CompareWords.new(report, hints: hints)
        @ascii = unicode ? nil : Ascii
        @width = [width, NARROWEST].max - (unicode ? 0 : Ascii::GROWTH)
        @palette = palette
        @foot = Provenance.new(width: @width, palette: palette)
        @drawing = Distribution.new(width: @width, palette: palette, unicode: unicode)
      end

      # The report's text, without a newline at its end.
      #: () -> String
      def to_s
        parts = (@details ? detailed : brief).reject(&:empty?)
        text = parts.map { |lines| lines.join("\n") }.join("\n\n")
        @ascii ? @ascii.of(text) : text
      end

      private

      def detailed
        [commits, verdicts(@words.undecided), table, drawings, *growths, beside, *predictions, why, control,
         @foot.warnings(@report), made, command]
      end

      def brief
        if @report.commits || @report.search
          return [commits, changed_together, [*@foot.warnings_together(@report), *note(@words.made_briefly)]]
        end

        undecided = @words.alone? ? @words.undecided : @words.undecided_together
        changed = @words.alone? ? beside : changed_together
        [verdicts(undecided), table, (@words.alone? ? drawings : []), *growths, changed, *predictions, why,
         [*control, *@foot.warnings_together(@report), *note(@words.made_briefly)]]
      end

      # Of a range of commits: what each does, or which one was found.
      def commits
        view = CommitsView if @report.commits
        view = SearchView if @report.search
        view ? view.new(@report, hints: @hints).lines(width: @width, palette: @palette) : []
      end

      def verdicts(undecided)
        lines = @words.verdicts.flat_map do |claim, figures, style|
          wrap([claim, figures].compact.join(": ")) { |line| @palette.bold(@palette.public_send(style, line)) }
        end
        lines += undecided.flat_map { |text| wrap(text) { |line| @palette.yellow(line) } }
        lines + @words.gate.flat_map { |text, style| wrap(text) { |line| @palette.public_send(style, line) } }
      end

      def table
        rows(@report.headline, @words.several? ? ["case, side"] : ["case"]) { |effect| @words.subject(effect) }
      end

      def rows(effects, first, **more)
        return [] if effects.empty?

        heads = [*first, *ends(effects), "change", interval(effects), "verdict"]
        styles = effects.map { |effect| { 3 => EffectWords.style(effect), 5 => EffectWords.style(effect) } }
        cells = effects.map { |effect| [yield(effect), *values(effect, heads[-2]), EffectWords.short(effect)] }
        Columns.new(heads: heads, width: @width, palette: @palette, left: [5], **more).lines(cells, styles: styles)
      end

      # Heads of the two columns of values: the sides' names where all rows have the same sides, else "base" and "side".
      def ends(effects)
        %i[base side].map do |end_|
          names = effects.map(&end_).uniq
          names.size == 1 ? Text.shorten(names.first, NAME) : end_.to_s
        end
      end

      def interval(effects)
        levels = effects.reject(&:exact).filter_map { |effect| EffectWords.level(effect.ratio) }.reject(&:empty?).uniq
        levels.size == 1 ? "#{levels.first} interval" : "interval"
      end

      # Cells of both values, the change and its interval. A ratio is shown only with its interval. The interval has its
      # level where the head doesn't have it.
      def values(effect, head)
        ends = [Figures.value(effect.a, effect.unit), Figures.value(effect.b, effect.unit)]
        return ends + ["", "none"] unless Figures.sized?(effect.ratio) || effect.exact
        return ends + [effect.a == effect.b ? "" : Figures.change(effect.ratio), ""] if effect.exact

        range = Figures.range(effect.ratio)
        range += " (#{EffectWords.level(effect.ratio)})" if head == "interval"
        ends + [Figures.change(effect.ratio), range]
      end

      def drawings
        names = @report.headline.map(&:name).uniq
        styles = @report.headline.group_by(&:side).transform_values do |effects|
          effects.size == 1 ? EffectWords.style(effects.first) : nil
        end
        unit = Record::METRICS[@report.metric]&.unit || "ns"
        drawn = names.first(DRAWN).map do |name|
          lines = @drawing.lines(@report.medians(name), unit: unit, styles: styles.compact)
          lines.empty? ? [] : [*(names.size > 1 ? [Text.shorten(name, @width)] : []), *lines]
        end.reject(&:empty?)
        return [] if drawn.empty?

        title = wrap("Median of each process, #{EffectWords.title(@report.metric)}") { |line| @palette.dim(line) }
        rest = names.size > DRAWN ? [@palette.dim("#{Units.things(names.size - DRAWN, "more case")} not drawn")] : []
        title + drawn.flatten + rest
      end

      # The metrics beside the headline: a table for each case and side.
      def beside
        shown, undecided, same = @words.beside
        shown, undecided, same = shown.select { |effect| @words.decided?(effect) }, [], [] unless @details
        groups = shown.group_by { |effect| @words.subject(effect) }
        lines = groups.flat_map do |subject, effects|
          title = @words.alone? ? "beside it" : Text.shorten("beside it, #{subject}", METRIC + NAME)
          rows(effects, [title], name: METRIC) { |effect| EffectWords.title(effect.metric) }
        end
        lists = { "undecided" => @words.partly(undecided), "same" => @words.list(same) }
        lines + lists.reject { |_, list| list.empty? }.flat_map { |word, list| note("#{word}: #{list}") }
      end

      def changed_together = @words.changed.flat_map { |text| wrap(text) { |line| line } }

      def growths
        view = GrowthView.new(width: @width, palette: @palette, unicode: @ascii.nil?)
        @report.growths.to_a.map { |sweep| view.lines(sweep) }
      end

      def why
        base = @report.sides.first&.name.to_s
        @report.why.to_h.flat_map do |side, result|
          WhyText.new(width: @width, palette: @palette, hints: @hints).lines(result, base: base, side: side)
        end
      end

      def predictions
        base = @report.sides.first&.name.to_s
        @report.predictions.to_h.map do |side, check|
          PredictionCheckView.new(check, base: base, side: side)
                             .lines(width: @width, palette: @palette, hints: @hints)
        end
      end

      def control = @words.control.flat_map { |text, style| wrap(text) { |line| @palette.public_send(style, line) } }

      def made
        host = Provenance.host(@report.host)
        @foot.facts({ "made of" => @words.made }.merge(@words.sides, { "host" => host }))
      end

      def command
        lines = @foot.command(@report.command)
        lines.empty? ? [] : [@palette.dim("Again:"), *lines]
      end

      def note(text) = wrap(text) { |line| @palette.dim(line) }

      def wrap(text, &paint) = Text.wrap(text, @width).map(&paint)
    end
  end
end
