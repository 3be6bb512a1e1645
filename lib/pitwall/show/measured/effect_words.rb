# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # An effect in words. A difference is claimed only when the printed interval excludes 1.
    module EffectWords
      STYLES = { faster: :green, fewer: :green, slower: :red, more: :red, same: :dim, undecided: :yellow }.freeze
      DIFFERENT = { slower: "slower than", faster: "faster than", more: "above", fewer: "below" }.freeze
      QUERIES = "queries_per_request"
      private_constant :STYLES, :DIFFERENT, :QUERIES

      module_function

      # The verdict that is shown: the effect's own; :undecided when the effect's interval contains 1.
      #: (Analyse::Effect) -> Symbol
      def verdict(effect)
        return effect.verdict unless DIFFERENT.key?(effect.verdict)

        ratio = effect.ratio
        proven = ratio&.interval? && (effect.worse? ? ratio.low > 1 : ratio.high < 1)
        proven || (effect.exact && effect.a != effect.b) ? effect.verdict : :undecided
      end

      # The palette's method for an effect, e.g. :green.
      #: (Analyse::Effect) -> Symbol
      def style(effect) = effect.below_margin ? :dim : STYLES.fetch(verdict(effect), :yellow)

      # The verdict for a table: "slower", "same within 1%", "slower, below 1%", "more, exact".
      #: (Analyse::Effect) -> String
      def short(effect)
        word = verdict(effect)
        words = word == :same && effect.below_margin && Figures.sized?(effect.ratio) ? direction(effect) : word.to_s
        return "#{words}, exact" if effect.exact
        return "#{words}, below #{Figures.share(effect.margin)}" if effect.below_margin && effect.margin
        return "same within #{Figures.share(effect.margin)}" if word == :same && effect.margin

        words
      end

      # Two parts of a sentence: the claim, and its figures with the interval and the interval's level.
      #   "your changes are slower than main", "2.1% more wall time (99% interval: 1.4% … 2.8% more)"
      # Changes by a factor of two or more are given as factors:
      #   "your changes are 3.21 times faster than main",
      #   "wall time 12.4 ms → 3.85 ms (99% interval: 3.03 … 3.33 times)"
      #: (Analyse::Effect) -> [String, String]
      def sentence(effect)
        return [claim(effect), measure(effect)] unless many_times?(effect)

        word = verdict(effect)
        ratio = word == :faster ? effect.ratio.map { |times| 1 / times } : effect.ratio
        ["#{is(effect.side)} #{Figures.change_in_words(ratio)} #{word} than #{effect.base}",
         "#{title(effect.metric)} #{from_to(effect)} (#{level(ratio)} interval: #{Figures.range_in_words(ratio)})"]
      end

      # A side with its verb: "main is", "your changes are".
      #: (String) -> String
      def is(side) = "#{side} #{side.start_with?("your changes") ? "are" : "is"}"

      # A metric's title: "objects" → "objects allocated". A metric without a title keeps its name.
      #: (String) -> String
      def title(metric)
        own = Record::METRICS[metric]&.title and return own

        mean = metric.delete_suffix("_mean")
        mean == metric ? metric.tr("_", " ") : "#{title(mean)}, mean"
      end

      # Level of an estimate's interval: 0.99 → "99%".
      #: (Analyse::Estimate?) -> String
      def level(estimate)
        return "" unless estimate&.level
        share = Figures.share(estimate.level)
        # Never certainty: 0.99992 → "99.99%"
        share == "100%" && estimate.level < 1 ? format("%.2f%%", (estimate.level * 10_000).floor / 100.0) : share
      end

      # An effect's figures: "2.1% more wall time (99% interval: 1.4% … 2.8% more)".
      #: (Analyse::Effect) -> String
      def measure(effect)
        title = title(effect.metric)
        if effect.exact && Figures.sized?(effect.ratio)
          return "#{title} #{from_to(effect)}, #{Figures.change(effect.ratio)}, exact"
        end

        return "#{title} #{from_to(effect)}" unless Figures.sized?(effect.ratio)

        less = effect.unit == "count" ? "fewer" : "less"
        words = Figures.change_in_words(effect.ratio, less: less)
        article = words.end_with?("times") ? "the " : ""
        range = Figures.range_in_words(effect.ratio, less: less)
        "#{words} #{article}#{title} (#{level(effect.ratio)} interval: #{range})"
      end

      def claim(effect)
        names = is(effect.side)
        word = verdict(effect)
        if effect.below_margin && effect.margin && word != :undecided
          less_than = Figures.share(effect.margin)
          return "#{names} really #{direction(effect)} than #{effect.base}, but by less than #{less_than}"
        end
        if %i[fewer more].include?(word) && effect.metric == QUERIES
          return "#{effect.side} asks #{word} queries than #{effect.base}"
        end

        return "#{names} #{DIFFERENT.fetch(word)} #{effect.base}" if DIFFERENT.key?(word)
        if word == :same
          margin = " within #{Figures.share(effect.margin)}" if effect.margin && !effect.exact
          return "#{names} the same as #{effect.base}#{margin}"
        end

        "Undecided whether #{is(effect.side)} faster or slower than #{effect.base}"
      end

      # "faster" or "slower" for times, "fewer" or "more" for counts, whatever the verdict.
      def direction(effect)
        below = effect.ratio.point < 1
        return below ? "fewer" : "more" unless effect.unit == "ns"

        below ? "faster" : "slower"
      end

      def from_to(effect) = "#{Figures.value(effect.a, effect.unit)} → #{Figures.value(effect.b, effect.unit)}"

      # Whether the sentence gives a factor: "3.21 times faster".
      def many_times?(effect)
        %i[faster slower].include?(verdict(effect)) && !effect.below_margin && !effect.exact &&
          Figures.sized?(effect.ratio) && Figures.change_in_words(effect.ratio).end_with?("times")
      end
      private_class_method :claim, :direction, :from_to, :many_times?
    end
  end
end
