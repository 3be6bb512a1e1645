# frozen_string_literal: true

require "pitwall/show/measured/effect_words"
require "pitwall/show/measured/json_values"
require "pitwall/show/terminal/columns"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/plain"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # What each commit of a range does, as text, Markdown and JSON.
    class CommitsView
      # @param hints [Views::Hints] options that notes suggest
      #: (Analyse::ComparisonReport, hints: untyped) -> void
      def initialize(report, hints: nil)
        @report = report
        @commits = report.commits
        @hints = hints
      end

      # The lines of the text: the answers, a table for each case, the commits that were not measured.
      #: (width: Integer, ?palette: untyped) -> Array[String]
      def lines(width:, palette: Plain)
        parts = @commits.outcomes.map do |outcome|
          found = answers(outcome).flat_map do |text, style|
            Text.wrap(text, width).map { |line| palette.public_send(style, line) }
          end
          [*title(outcome), *found, "", *table(outcome, width, palette)]
        end
        parts << skipped.flat_map { |text| Text.wrap(text, width) }.map { |line| palette.yellow(line) }
        parts.reject(&:empty?).inject { |all, part| [*all, "", *part] }.to_a
      end

      # The same as Markdown.
      #: () -> Array[String]
      def markdown
        parts = @commits.outcomes.map do |outcome|
          found = answers(outcome).flat_map do |text, style|
            text = Markdown.text(text)
            [style == :dim ? text : "**#{text}**", ""]
          end
          heads = ["commit", "change", "interval", "pairs", "verdict"]
          rows = cells(outcome).map do |row, _|
            [Markdown.code(row[0]), *row.drop(1).map { |cell| Markdown.text(cell) }]
          end
          [*title(outcome).map { |line| Markdown.text(line) }, *found,
           *Markdown.table(heads, rows, left: [0, heads.size - 1])]
        end
        parts << skipped.map { |text| "- #{Markdown.text(text)}" }
        parts.reject(&:empty?).inject { |all, part| [*all, "", *part] }.to_a
      end

      # The object `commits` of the JSON report.
      #: () -> Hash[String, untyped]
      def json
        { "range" => @commits.range, "skipped" => @commits.skipped,
          "outcomes" => @commits.outcomes.map do |outcome|
            { "case" => outcome.kase,
              "commits" => outcome.steps.map { |unit, effect| object(unit, effect) },
              "named" => outcome.named.map { |unit, _| unit.commits.last["id"] },
              "together" => outcome.together && JsonValues.effect(outcome.together),
              "product" => JsonValues.estimate(outcome.product), "agreement" => agreement(outcome.agreement),
              "alone" => outcome.alone.map do |alone|
                object(alone.unit, alone.effect)
                  .merge("reason" => alone.reason, "agreement" => agreement(alone.agreement))
              end }
          end }
      end

      private

      def object(unit, effect)
        { "name" => unit.name, "commits" => unit.commits, "effect" => effect && JsonValues.effect(effect) }
      end

      def agreement(found)
        found && { "verdict" => found.verdict, "difference" => JsonValues.estimate(found.difference) }
      end

      def title(outcome) = @commits.outcomes.size > 1 ? [Text.safe(outcome.kase)] : []

      # --- sentences, each with its style

      def answers(outcome)
        [*who(outcome), *objects(outcome), *whole(outcome), *outcome.alone.map { |alone| alone(alone) }]
      end

      def who(outcome)
        return outcome.named.map { |unit, effect| culprit(unit, effect) } if outcome.named.any?

        open = outcome.steps.reject { |_, effect| effect&.decided? }
        all = Units.things(outcome.steps.size, "commit")
        if open.empty?
          margin = Figures.share(@report.settings["margin"] || 0.01)
          return [["None of #{all} changes the #{metric} by #{margin} or more", :green]]
        end

        longer = @hints && ": #{@hints.longer}"
        [["Undecided: no commit is known to change the #{metric}, and #{open.size} of #{all} " \
          "#{open.size == 1 ? "has" : "have"} no verdict#{longer}", :yellow]]
      end

      # Commits that allocate another number of objects.
      def objects(outcome)
        outcome.steps.filter_map do |unit, _|
          effect = @report.other_effects.find { |each| each.name == unit.name && each.metric == "objects" }
          next unless effect&.decided? && effect.verdict != :same && !effect.below_margin

          ["#{Text.safe(name(unit))} allocates #{effect.verdict} objects: #{EffectWords.measure(effect)}",
           EffectWords.style(effect)]
        end
      end

      def culprit(unit, effect)
        others = unit.commits[0..-2].map { |commit| commit["id"][0, 8] }
        more = " (with #{others.join(", ")})" if others.any?
        ["#{Text.safe(name(unit))}#{more} is #{effect.verdict}: #{EffectWords.measure(effect)}",
         EffectWords.style(effect)]
      end

      def whole(outcome)
        effect = outcome.together or return []
        words = "All together: #{EffectWords.measure(effect)}, #{EffectWords.short(effect)}"
        return [[words, :dim]] unless outcome.agreement

        ratio = outcome.product
        product = "The single effects multiply to #{Figures.change(ratio)} (#{Figures.range(ratio)})"
        [[words, :dim], ["#{product}#{fit(outcome.agreement)}", outcome.agreement.verdict == :differ ? :yellow : :dim]]
      end

      def fit(agreement)
        case agreement.verdict
        when :agree then ", as all together"
        when :differ then ", which differs from all together by #{Figures.change(agreement.difference)} " \
                          "(#{Figures.range(agreement.difference)}): something disturbed the measurement"
        else ". Whether that is all together's effect isn't certain " \
             "(their difference: #{Figures.range(agreement.difference)})"
        end
      end

      def alone(alone)
        id = alone.unit.commits.last["id"][0, 8]
        if alone.reason
          return ["#{id} can't be measured without the commits before it: #{Text.line(alone.reason)}", :dim]
        end
        return ["#{id} alone: nothing was measured", :dim] unless alone.effect

        words = "#{id} alone, without the commits before it: #{EffectWords.measure(alone.effect)}"
        found = alone.agreement or return [words, :dim]
        difference = Figures.range(found.difference)
        case found.verdict
        when :agree then ["#{words}. That is the same: they don't interact", :dim]
        when :differ
          ["#{words}. After them its effect is another: they interact (difference: #{difference})", :yellow]
        else ["#{words}. Whether they interact isn't certain (difference: #{difference})", :dim]
        end
      end

      def skipped
        @commits.skipped.map do |commit|
          "not measured: #{Text.line("#{commit["id"].to_s[0, 8]} #{commit["title"]}".strip)}: " \
            "#{Text.line(commit["reason"].to_s)}"
        end
      end

      # --- tables

      def table(outcome, width, palette)
        rows = cells(outcome)
        heads = ["commit", "change", interval(rows.map(&:last)), "pairs", "verdict"]
        styles = rows.map do |_, effect|
          effect ? { 1 => EffectWords.style(effect), 4 => EffectWords.style(effect) } : {}
        end
        table = Columns.new(heads: heads, width: width, palette: palette, left: [4], name: 24)
        table.lines(rows.map(&:first), styles: styles)
      end

      # The cells of each row, with its effect.
      def cells(outcome)
        rows = outcome.steps.map { |unit, effect| [name(unit), effect] }
        rows << ["all together", outcome.together] if outcome.together
        rows += outcome.alone.reject(&:reason).map { |alone| [name(alone.unit), alone.effect] }
        rows.map { |name, effect| [[Text.safe(name), *figures(effect)], effect] }
      end

      # A unit's name without its case.
      def name(unit) = unit.name.delete_suffix(": #{unit.kase}")

      def figures(effect)
        return ["", "", "", "not measured"] unless effect
        return ["", "none", effect.pairs.to_s, EffectWords.short(effect)] unless Figures.sized?(effect.ratio)

        [Figures.change(effect.ratio), Figures.range(effect.ratio), effect.pairs.to_s, EffectWords.short(effect)]
      end

      def interval(effects)
        level = effects.compact.map { |effect| EffectWords.level(effect.ratio) }.reject(&:empty?).first
        [level, "interval"].compact.join(" ")
      end

      def metric = EffectWords.title(@report.metric)
    end
  end
end
