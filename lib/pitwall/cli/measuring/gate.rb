# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record/sample"
require "pitwall/show"

module Pitwall
  module CLI
    # `--fail-if EXPR`: a limit that turns into exit status 1.
    #
    #   slower                 of a comparison: the verdict
    #   wall > 2%              of a comparison: proved to be so much more than the base
    #   objects > 0%           of a comparison: more at all
    #   objects > 1200         of a figure per iteration
    #   wall > 1.5ms or bytes > 1MB
    #   retained > 2k          of all that a command allocated (`allocations`)
    #
    # A figure with an interval exceeds a limit when its whole interval does: what is in doubt fails nobody's build.
    class Gate
      # metric, operator (">", ">=", "<", "<="; nil for a word), limit (Float), relative (whether it is about B/A), text; unit of
      # the metric: "ns", "bytes" or "count"
      Condition = Struct.new(:metric, :operator, :limit, :relative, :text, :unit, keyword_init: true) do
        # Whether the end of the interval that is nearer to being fine is beyond the limit.
        #: (Analyse::Estimate?) -> bool
        def exceeded?(estimate)
          return false unless estimate&.point

          value = (operator.start_with?(">") ? estimate.low : estimate.high) || estimate.point
          value.public_send(operator, limit)
        end

        # "objects is 1,500, limit 1200", for a value that exceeds it.
        #: (Integer) -> String
        def verdict(value)
          value = unit == "ns" ? Show::Units.duration(value) : "#{Show::Units.count(value)}#{" B" if unit == "bytes"}"
          "#{metric} is #{value}, limit #{text[/[<>]=?\s*(.*)/, 1]}"
        end

        # Whether an effect is as the condition says. What could not be judged is not.
        # @yield for the estimate of B alone, in the metric's unit
        #: (Analyse::Effect) { () -> Analyse::Estimate? } -> bool
        def holds_for?(effect)
          return word?(effect) unless operator
          return false unless effect.metric == metric && effect.reason.nil?
          return exceeded?(yield) unless relative

          # Something of nothing has no ratio, and is more than any.
          effect.ratio&.point ? exceeded?(effect.ratio) : effect.exact && effect.verdict == :more && operator.start_with?(">")
        end

        private

        def word?(effect)
          case metric
          when "more" then effect.verdict == :more
          when "worse" then effect.worse?
          else effect.metric == "wall" && effect.verdict == metric.to_sym
          end
        end
      end

      # By what a metric is measured in.
      UNITS = { "ns" => { "ns" => 1, "us" => 1e3, "µs" => 1e3, "ms" => 1e6, "s" => 1e9 },
                "bytes" => { "B" => 1, "kB" => 1e3, "KB" => 1e3, "MB" => 1e6, "GB" => 1e9, "KiB" => 1024.0, "MiB" => 1024.0**2, "GiB" => 1024.0**3 },
                "count" => { "k" => 1e3, "M" => 1e6 } }.freeze
      VERDICTS = %w[slower more worse undecided].freeze
      CONDITION = /\A(?<metric>[a-z_]+)\s*(?<operator>>=|<=|>|<)\s*(?<number>-?\d[\d_]*(?:\.\d+)?)\s*(?<unit>[a-zA-Zµ%]*)\z/.freeze
      private_constant :UNITS, :VERDICTS, :CONDITION

      # @param metrics [Array<String>, Hash<String, String>] names that may be asked for; with their units, where they are not those of Record::METRICS
      # @param alone [Boolean] there is nothing to compare with
      # @raise [UsageError] it can't be read, or asks for a metric that isn't there, or for a comparison where there is none
      #: (String, metrics: (Array[String] | Hash[String, String]), ?alone: bool) -> Gate
      def self.parse(text, metrics:, alone: false)
        units = metrics.is_a?(Hash) ? metrics : metrics.to_h { |name| [name, Record::METRICS[name]&.unit || "ns"] }
        parts = text.split(/,|\bor\b/, -1)
        new((parts.empty? ? [""] : parts).map { |part| condition(part.strip, units, text, alone) })
      end

      # @api private
      def self.condition(part, units, whole, alone)
        raise UsageError, "--fail-if #{whole}: there is nothing to compare with; write a limit such as objects > 1200" if alone && (VERDICTS.include?(part) || part.match?(/\d\s*[%x]\z/))
        return Condition.new(metric: part, text: part) if VERDICTS.include?(part)

        found = CONDITION.match(part) or raise UsageError, "--fail-if #{whole}: cannot read `#{part}`; write #{form(units, alone)}"
        raise UsageError, "--fail-if #{whole}: no metric #{found[:metric]}; there are #{units.keys.join(", ")}" unless units.key?(found[:metric])

        unit = units.fetch(found[:metric])
        Condition.new(metric: found[:metric], operator: found[:operator], **limit(found, unit, whole, alone), text: part, unit: unit)
      end
      private_class_method :condition

      # @api private
      def self.form(units, alone)
        alone ? "METRIC > NUMBER[k|MB|ms], METRIC one of #{units.keys.join(", ")}" : "METRIC > NUMBER[ms|MB|%], or one of #{VERDICTS.join(", ")}"
      end
      private_class_method :form

      # @api private
      def self.limit(found, unit, whole, alone)
        number = found[:number].delete("_").to_f
        case found[:unit]
        when "" then { limit: number, relative: false }
        when "%" then { limit: 1 + (number / 100), relative: true }
        when "x" then { limit: number, relative: true }
        else
          scales = UNITS.fetch(unit)
          scale = scales[found[:unit]] or raise UsageError, "--fail-if #{whole}: #{found[:metric]} takes #{scales.keys.join(" ")}#{" % x" unless alone}, not #{found[:unit]}"
          { limit: number * scale, relative: false }
        end
      end
      private_class_method :limit

      # @return [Array<Condition>]
      attr_reader :conditions

      def initialize(conditions)
        @conditions = conditions
      end

      # Whether a condition is about one side against another.
      #: () -> bool
      def relative? = conditions.any? { |condition| condition.relative || condition.operator.nil? }

      # Metrics that are asked for and that nothing was measured of.
      #: (Array[String]) -> Array[String]
      def unmeasured(metrics) = conditions.select(&:operator).map(&:metric).uniq - metrics

      # The first condition that holds, as the block judges.
      #: () { (Condition) -> bool } -> Condition?
      def failed(&block) = conditions.find(&block)
    end
  end
end
