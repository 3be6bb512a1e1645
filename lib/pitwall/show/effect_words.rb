# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/show/figures"
require "pitwall/show/text"

module Pitwall
  module Show
    # An effect in words. A difference is claimed only where the interval that is printed with it excludes 1.
    module EffectWords
      STYLES = { faster: :green, fewer: :green, slower: :red, more: :red, same: :dim, undecided: :yellow }.freeze
      DIFFERENT = { slower: "slower than", faster: "faster than", more: "above", fewer: "below" }.freeze
      private_constant :STYLES, :DIFFERENT

      module_function

      # The verdict that is shown: the effect's own, unless its interval doesn't carry it.
      #: (Analyse::Effect) -> Symbol
      def verdict(effect)
        return effect.verdict unless DIFFERENT.key?(effect.verdict)

        ratio = effect.ratio
        carried = ratio&.interval? && (effect.worse? ? ratio.low > 1 : ratio.high < 1)
        carried || (effect.exact && effect.a != effect.b) ? effect.verdict : :undecided
      end

      # Method of the palette.
      #: (Analyse::Effect) -> Symbol
      def style(effect) = effect.below_margin ? :dim : STYLES.fetch(verdict(effect), :yellow)

      # A few words for a table: "slower", "same within 1%", "slower, below 1%", "more, exact".
      #: (Analyse::Effect) -> String
      def short(effect)
        word = verdict(effect)
        words = word == :same && effect.below_margin && Figures.sized?(effect.ratio) ? real(effect) : word.to_s
        return "#{words}, exact" if effect.exact
        return "#{words}, below #{Figures.share(effect.margin)}" if effect.below_margin && effect.margin
        return "same within #{Figures.share(effect.margin)}" if word == :same && effect.margin

        words
      end

      # What is claimed, and the figures it rests on, with the interval and its level: "dirty is slower than main",
      # "2.1% more wall time (99% interval: 1.4% … 2.8% more)".
      #: (Analyse::Effect) -> [String, String]
      def sentence(effect) = [claim(effect), measure(effect)]

      # "objects allocated"; a metric without a title has its own name.
      #: (String) -> String
      def title(metric)
        own = Record::METRICS[metric]&.title and return own

        mean = metric.delete_suffix("_mean")
        mean == metric ? metric.tr("_", " ") : "#{title(mean)}, mean"
      end

      # 0.99 → "99%"
      #: (Analyse::Estimate?) -> String
      def level(estimate) = estimate&.level ? Figures.share(estimate.level) : ""

      # "2.1% more wall time (99% interval: 1.4% … 2.8% more)"
      #: (Analyse::Effect) -> String
      def measure(effect)
        title = title(effect.metric)
        from_to = "#{Figures.value(effect.a, effect.unit)} → #{Figures.value(effect.b, effect.unit)}"
        return "#{title} #{from_to}, #{Figures.change(effect.ratio)}, exact" if effect.exact && Figures.sized?(effect.ratio)
        return "#{title} #{from_to}" unless Figures.sized?(effect.ratio)

        less = effect.unit == "count" ? "fewer" : "less"
        words = Figures.change_in_words(effect.ratio, less: less)
        joint = words.end_with?("times") ? "the " : ""
        "#{words} #{joint}#{title} (#{level(effect.ratio)} interval: #{Figures.range_in_words(effect.ratio, less: less)})"
      end

      def claim(effect)
        names = "#{effect.side} is"
        word = verdict(effect)
        if effect.below_margin && effect.margin && word != :undecided
          return "#{names} really #{real(effect)} than #{effect.base}, but by less than #{Figures.share(effect.margin)}"
        end
        return "#{names} #{DIFFERENT.fetch(word)} #{effect.base}" if DIFFERENT.key?(word)
        return "#{names} the same as #{effect.base}#{" within #{Figures.share(effect.margin)}" if effect.margin && !effect.exact}" if word == :same

        "Undecided whether #{effect.side} is faster or slower than #{effect.base}"
      end

      def real(effect)
        below = effect.ratio.point < 1
        return below ? "fewer" : "more" unless effect.unit == "ns"

        below ? "faster" : "slower"
      end
      private_class_method :claim, :real
    end
  end
end
