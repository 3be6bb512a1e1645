# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # An effect in words. A difference is claimed only where the interval that is printed with it excludes 1.
    module EffectWords
      STYLES = { faster: :green, fewer: :green, slower: :red, more: :red, same: :dim, undecided: :yellow }.freeze
      DIFFERENT = { slower: "slower than", faster: "faster than", more: "above", fewer: "below" }.freeze
      QUERIES = "queries_per_request"
      private_constant :STYLES, :DIFFERENT, :QUERIES

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

      # Two parts of a sentence. First the claim: "your changes are slower than main". Then its figures, with the interval and
      # its level: "2.1% more wall time (99% interval: 1.4% … 2.8% more)". Changes by a factor of two or more are given as factors:
      # "your changes are 3.21 times faster than main", "wall time 12.4 ms → 3.85 ms (99% interval: 3.03 … 3.33 times)".
      #: (Analyse::Effect) -> [String, String]
      def sentence(effect)
        return [claim(effect), measure(effect)] unless many_times?(effect)

        word = verdict(effect)
        ratio = word == :faster ? effect.ratio.map { |times| 1 / times } : effect.ratio
        ["#{is(effect.side)} #{Figures.change_in_words(ratio)} #{word} than #{effect.base}",
         "#{title(effect.metric)} #{from_to(effect)} (#{level(ratio)} interval: #{Figures.range_in_words(ratio)})"]
      end

      # "main is", "your changes are"
      #: (String) -> String
      def is(side) = "#{side} #{side.start_with?("your changes") ? "are" : "is"}"

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
        return "#{title} #{from_to(effect)}, #{Figures.change(effect.ratio)}, exact" if effect.exact && Figures.sized?(effect.ratio)
        return "#{title} #{from_to(effect)}" unless Figures.sized?(effect.ratio)

        less = effect.unit == "count" ? "fewer" : "less"
        words = Figures.change_in_words(effect.ratio, less: less)
        joint = words.end_with?("times") ? "the " : ""
        "#{words} #{joint}#{title} (#{level(effect.ratio)} interval: #{Figures.range_in_words(effect.ratio, less: less)})"
      end

      def claim(effect)
        names = is(effect.side)
        word = verdict(effect)
        if effect.below_margin && effect.margin && word != :undecided
          return "#{names} really #{real(effect)} than #{effect.base}, but by less than #{Figures.share(effect.margin)}"
        end
        return "#{effect.side} asks #{word} queries than #{effect.base}" if %i[fewer more].include?(word) && effect.metric == QUERIES
        return "#{names} #{DIFFERENT.fetch(word)} #{effect.base}" if DIFFERENT.key?(word)
        return "#{names} the same as #{effect.base}#{" within #{Figures.share(effect.margin)}" if effect.margin && !effect.exact}" if word == :same

        "Undecided whether #{is(effect.side)} faster or slower than #{effect.base}"
      end

      def real(effect)
        below = effect.ratio.point < 1
        return below ? "fewer" : "more" unless effect.unit == "ns"

        below ? "faster" : "slower"
      end

      def from_to(effect) = "#{Figures.value(effect.a, effect.unit)} → #{Figures.value(effect.b, effect.unit)}"

      def many_times?(effect)
        %i[faster slower].include?(verdict(effect)) && !effect.below_margin && !effect.exact && Figures.sized?(effect.ratio) &&
          Figures.change_in_words(effect.ratio).end_with?("times")
      end
      private_class_method :claim, :real, :from_to, :many_times?
    end
  end
end
