# frozen_string_literal: true

require "pitwall/show/terminal/columns"
require "pitwall/show/measured/effect_words"
require "pitwall/show/terminal/figures"
require "pitwall/show/measured/json_values"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The change of requests between two recordings: a sentence for each change, and a table by route.
    class RequestChangeView
      ROWS = 8 # rows of the table
      SENTENCES = 3 # sentences, at most
      private_constant :ROWS, :SENTENCES

      #: (Analyse::RequestChange) -> void
      def initialize(change)
        @change = change
      end

      # Lines of text; none without requests.
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Integer, palette: untyped, hints: untyped) -> Array[String]
      def lines(width:, palette:, hints:)
        return [] unless @change.any?

        sentences = verdicts.first(SENTENCES).flat_map do |claim, figures, style|
          Text.wrap("#{claim}: #{figures}", width).map { |line| palette.bold(palette.public_send(style, line)) }
        end
        notes = notes(hints).flat_map { |text| Text.wrap(text, width) }
        [*sentences, *("" if sentences.any?), *table(width, palette), *notes.map { |line| palette.dim(line) }, ""]
      end

      # A sentence for each change: the claim, its figures, its style.
      #: () -> Array[[String, String, Symbol]]
      def verdicts
        changed = @change.effects.select do |effect|
          !%i[same undecided].include?(EffectWords.verdict(effect)) && !effect.below_margin
        end
        changed.map do |effect|
          claim, figures = EffectWords.sentence(effect)
          ["#{effect.name}: #{claim}", figures, EffectWords.style(effect)]
        end
      end

      # The effects' JSON objects.
      #: () -> Array[Hash[String, untyped]]
      def json = @change.effects.map { |effect| JsonValues.effect(effect) }

      # Parts of a page (MeasuredPage.of_parts).
      #: () -> Hash[Symbol, untyped]
      def parts
        return {} unless @change.any?

        claims = verdicts.map { |claim, figures, style| { "claim" => claim, "figures" => figures, "style" => style } }
        rows = @change.effects.map do |effect|
          cells(effect).each_with_index.map do |cell, at|
            [4, 6].include?(at) ? { "text" => cell, "style" => EffectWords.style(effect) } : cell
          end
        end
        { verdicts: claims, tables: [{ "title" => "Requests", "heads" => heads, "rows" => rows }] }
      end

      # Notes below the table.
      #: (untyped) -> Array[String]
      def notes(hints)
        rest = @change.effects.size - ROWS
        reasons = shown.select(&:reason).group_by { |effect| "#{"undecided; " unless effect.decided?}#{effect.reason}" }
        reasons = reasons.map { |reason, effects| "#{effects.map(&:name).uniq.join(", ")}: #{reason}" }
        whole = if @change.between_runs then "the intervals include how recordings of one side differ"
                else "the intervals leave out that another run may differ as a whole " \
                     "(#{hints.sides(", ")} include it)"
                end
        [*("#{Units.things(rest, "more row")} (#{hints.json})" if rest.positive?), *reasons,
         "the intervals hold together: the chance that any verdict is a false alarm is below " \
         "#{Figures.share(Analyse::RequestChange::ALPHA)}; #{whole}"]
      end

      private

      def shown = @change.effects.first(ROWS)

      def table(width, palette)
        styles = shown.map { |effect| { 4 => EffectWords.style(effect), 6 => EffectWords.style(effect) } }
        columns = Columns.new(heads: heads, width: width, palette: palette, left: [1, 6])
        columns.lines(shown.map { |effect| cells(effect) }, styles: styles)
      end

      def heads
        base, side = @change.effects.first.to_h.values_at(:base, :side).map do |name|
          Text.shorten(File.basename(name), 14)
        end
        ["requests", "", base, side, "change", "interval", "verdict"]
      end

      def cells(effect) = [effect.name, EffectWords.title(effect.metric), *figures(effect), EffectWords.short(effect)]

      def figures(effect)
        ends = [effect.a, effect.b].map { |value| Figures.value(value, effect.unit) }
        return [*ends, effect.a == effect.b ? "" : Figures.change(effect.ratio), ""] if effect.exact

        return [*ends, "", "none"] unless Figures.sized?(effect.ratio)

        [*ends, Figures.change(effect.ratio), Figures.range(effect.ratio)]
      end
    end
  end
end
