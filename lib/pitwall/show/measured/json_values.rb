# frozen_string_literal: true

require "pitwall/show/measured/effect_words"
require "pitwall/show/measured/growth_view"

module Pitwall
  module Show
    # What all JSON views of measurements share. Every number there is finite: what isn't known, or is no number, is
    # null.
    module JsonValues
      module_function

      # Values that JSON has: symbols become strings, NaN and infinities nil, structs objects.
      #: (untyped) -> untyped
      def clean(value)
        case value
        when Float then value.finite? ? value : nil
        when Symbol then value.to_s
        when String then value.valid_encoding? ? value.encode(Encoding::UTF_8) : value.scrub
        when Hash then value.to_h { |key, part| [key.to_s, clean(part)] }
        when Array then value.map { |part| clean(part) }
        when Struct then clean(value.to_h)
        when nil, true, false, Integer then value
        else value.to_s
        end
      rescue EncodingError
        value.b.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
      end

      # {point, low, high, level}
      #: (Analyse::Estimate?) -> Hash[String, untyped]?
      def estimate(estimate)
        estimate && { "point" => estimate.point, "low" => estimate.low, "high" => estimate.high,
                      "level" => estimate.level }
      end

      # @param warning [Analyse::Warning]
      #: (Analyse::Warning) -> Hash[String, untyped]
      def warning(warning)
        { "kind" => warning.kind, "subject" => warning.subject, "text" => warning.text, "hint" => warning.hint }
      end

      # An entry of `results`: B/A of one metric of one case.
      #: (Analyse::Effect) -> Hash[String, untyped]
      def effect(effect)
        { "name" => effect.name, "metric" => effect.metric, "unit" => effect.unit, "side" => effect.side,
          "base" => effect.base,
          "a" => effect.a, "b" => effect.b, "ratio" => estimate(effect.ratio), "verdict" => EffectWords.verdict(effect),
          "smallest_detectable" => effect.smallest_detectable,
          "margin" => effect.margin, "below_margin" => effect.below_margin ? true : false,
          "exact" => effect.exact ? true : false,
          "pairs" => effect.pairs, "better" => "lower", "reason" => effect.reason }
      end

      # An entry of `growth` a case that was swept over N.
      # @param sweeps [Array<Analyse::Sweep>, nil]
      #: (Array[Analyse::Sweep]?) -> Array[Hash[String, untyped]]
      def growths(sweeps)
        sweeps.to_a.map do |sweep|
          base = sweep.base && { "side" => sweep.base_name, **fit(sweep.base) }
          { "name" => sweep.name, "parameter" => sweep.parameter, "side" => sweep.fit_name, **fit(sweep.fit),
            "base" => base,
            "against" => sweep.against && against(sweep.against), "text" => GrowthView.sentences(sweep) }
        end
      end

      def fit(fit)
        points = fit.points.map do |point|
          { "n" => point.n, "time" => estimate(point.time), "per_item" => estimate(point.per_item),
            "fitted" => point.fitted,
            "exponent" => point.exponent, "values" => point.values }
        end
        { "order" => fit.order, "candidates" => fit.candidates, "confidence" => fit.confidence,
          "weights" => fit.weights,
          "coefficients" => fit.coefficients, "exponent" => fit.exponent, "time_ratio" => estimate(fit.time_ratio),
          "per_item_ratio" => estimate(fit.per_item_ratio), "reason" => fit.reason, "points" => points }
      end

      def against(against)
        rows = against.rows.map do |row|
          { "n" => row.n, "base" => estimate(row.base), "time" => estimate(row.time),
            "speed_up" => estimate(row.speed_up) }
        end
        { "orders" => against.orders, "changed" => against.changed, "rows" => rows }
      end
      private_class_method :fit, :against

      # How it was made.
      #: (Analyse::ComparisonReport | Analyse::BenchReport) -> Hash[String, untyped]
      def context(report)
        { "host" => report.host || {}, "settings" => report.settings || {}, "losses" => report.losses || {},
          "warnings" => report.warnings.to_a.map { |warning| warning(warning) }, "duration_ns" => report.duration_ns,
          "command" => report.command }
      end
    end
  end
end
