# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record/sample"

module Pitwall
  module CLI
    # `--fail-if EXPR`: a limit that turns into exit status 1.
    #
    #   slower                 of a comparison: the verdict
    #   wall > 2%              of a comparison: proved to be so much more than the base
    #   objects > 0%           of a comparison: more at all
    #   objects > 1200         of a figure per iteration
    #   wall > 1.5ms or bytes > 1MB
    #
    # A figure with an interval exceeds a limit when its whole interval does: what is in doubt fails nobody's build.
    class Gate
      # metric, operator (">", ">=", "<", "<="; nil for a word), limit (Float), relative (whether it is about B/A), text
      Condition = Struct.new(:metric, :operator, :limit, :relative, :text, keyword_init: true) do
        # Whether the end of the interval that is nearer to being fine is beyond the limit.
        #: (Analyse::Estimate?) -> bool
        def exceeded?(estimate)
          return false unless estimate&.point

          value = (operator.start_with?(">") ? estimate.low : estimate.high) || estimate.point
          value.public_send(operator, limit)
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
                "bytes" => { "B" => 1, "kB" => 1e3, "KB" => 1e3, "MB" => 1e6, "GB" => 1e9, "KiB" => 1024.0, "MiB" => 1024.0**2 },
                "count" => { "k" => 1e3, "M" => 1e6 } }.freeze
      VERDICTS = %w[slower more worse undecided].freeze
      CONDITION = /\A(?<metric>[a-z_]+)\s*(?<operator>>=|<=|>|<)\s*(?<number>-?\d[\d_]*(?:\.\d+)?)\s*(?<unit>[a-zA-Zµ%]*)\z/.freeze
      private_constant :UNITS, :VERDICTS, :CONDITION

      # @param metrics [Array<String>] names that may be asked for
      # @raise [UsageError] it can't be read, or asks for a metric that isn't there
      #: (String, metrics: Array[String]) -> Gate
      def self.parse(text, metrics:)
        parts = text.split(/,|\bor\b/, -1)
        new((parts.empty? ? [""] : parts).map { |part| condition(part.strip, metrics, text) })
      end

      # @api private
      def self.condition(part, metrics, whole)
        return Condition.new(metric: part, text: part) if VERDICTS.include?(part)

        found = CONDITION.match(part) or
          raise UsageError, "--fail-if #{whole}: cannot read `#{part}`; write METRIC > NUMBER[ms|MB|%], or one of #{VERDICTS.join(", ")}"
        raise UsageError, "--fail-if #{whole}: no metric #{found[:metric]}; there are #{metrics.join(", ")}" unless metrics.include?(found[:metric])

        Condition.new(metric: found[:metric], operator: found[:operator], **limit(found, whole), text: part)
      end
      private_class_method :condition

      # @api private
      def self.limit(found, whole)
        number = found[:number].delete("_").to_f
        case found[:unit]
        when "" then { limit: number, relative: false }
        when "%" then { limit: 1 + (number / 100), relative: true }
        when "x" then { limit: number, relative: true }
        else
          units = UNITS.fetch(Record::METRICS[found[:metric]]&.unit || "ns")
          scale = units[found[:unit]] or raise UsageError, "--fail-if #{whole}: #{found[:metric]} takes #{units.keys.join(" ")} % x, not #{found[:unit]}"
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
