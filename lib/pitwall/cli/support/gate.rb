# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record/sample"
require "pitwall/show"

module Pitwall
  module CLI
    # `--fail-if EXPR`: conditions under which the exit status is 1.
    #
    #   slower                 a comparison's verdict is "slower"
    #   slower by 3%           it is, and by about 3% or more (Analyse::GateResult.slower_by?)
    #   wall > 2%              a comparison proves that B takes more than 2% longer than the base
    #   objects > 0%           a comparison proves that B allocates more objects
    #   objects > 1200         one iteration allocates more than 1200 objects
    #   wall > 1.5ms or bytes > 1MB
    #   retained > 2k          a command retained more than 2000 objects (verb `allocations`)
    #
    # A value with an interval exceeds a limit when the whole interval does. An undecided value doesn't fail a build.
    class Gate
      # metric:   e.g. "wall", or a verdict such as "slower"
      # operator: ">", ">=", "<", "<="; nil for a verdict
      # limit:    Float, in the metric's unit; a ratio such as 1.02 where `relative`
      # relative: whether the limit is about the ratio B/A
      # text:     the condition as typed
      # unit:     the metric's unit: "ns", "bytes" or "count"
      Condition = Struct.new(:metric, :operator, :limit, :relative, :text, :unit, keyword_init: true) do
        # Whether the whole interval is beyond the limit. For ">" that is: the interval's low end.
        #: (Analyse::Estimate?) -> bool
        def exceeded?(estimate)
          return false unless estimate&.point

          value = (operator.start_with?(">") ? estimate.low : estimate.high) || estimate.point
          value.public_send(operator, limit)
        end

        # Whether it compares two sides.
        #: () -> bool
        def relative? = relative || operator.nil?

        # The message for a value that exceeds the limit: "objects is 1,500, limit 1200".
        #: (Integer) -> String
        def verdict(value)
          value = unit == "ns" ? Show::Units.duration(value) : "#{Show::Units.count(value)}#{" B" if unit == "bytes"}"
          "#{metric} is #{value}, limit #{text[/[<>]=?\s*(.*)/, 1]}"
        end

        # Whether the condition holds for an effect. False for an effect that could not be judged.
        # @yield returns the estimate of B's own value, in the metric's unit
        #: (Analyse::Effect) { () -> Analyse::Estimate? } -> bool
        def holds_for?(effect)
          return verdict?(effect) unless operator
          return false unless effect.metric == metric && effect.reason.nil?
          return exceeded?(yield) unless relative

          # With a base of 0 there is no ratio. Any exact increase then exceeds every relative limit.
          return exceeded?(effect.ratio) if effect.ratio&.point

          effect.exact && effect.verdict == :more && operator.start_with?(">")
        end

        private

        def slower?(effect)
          return false unless effect.metric == "wall"

          limit ? Analyse::GateResult.slower_by?(effect, limit) : effect.verdict == :slower
        end

        def verdict?(effect)
          case metric
          when "more" then effect.verdict == :more
          when "worse" then effect.worse?
          when "slower" then slower?(effect)
          else effect.metric == "wall" && effect.verdict == metric.to_sym
          end
        end
      end

      # A metric's unit → the units that a limit may have, with their size in the metric's unit.
      UNITS = { "ns" => { "ns" => 1, "us" => 1e3, "µs" => 1e3, "ms" => 1e6, "s" => 1e9 },
                "bytes" => { "B" => 1, "kB" => 1e3, "KB" => 1e3, "MB" => 1e6, "GB" => 1e9,
                             "KiB" => 1024.0, "MiB" => 1024.0**2, "GiB" => 1024.0**3 },
                "count" => { "k" => 1e3, "M" => 1e6 } }.freeze
      VERDICTS = %w[slower more worse undecided].freeze
      # "slower by 3%"
      SLOWER_BY = /\Aslower by\s+(?<number>\d[\d_]*(?:\.\d+)?)\s*%\z/.freeze
      # "wall > 1.5ms"
      CONDITION = /\A(?<metric>[a-z_]+)\s*(?<operator>>=|<=|>|<)
                   \s*(?<number>-?\d[\d_]*(?:\.\d+)?)\s*(?<unit>[a-zA-Zµ%]*)\z/x.freeze
      private_constant :UNITS, :VERDICTS, :SLOWER_BY, :CONDITION

      # Reads the value of --fail-if.
      # @param metrics [Array<String>, Hash<String, String>] allowed metrics; a Hash gives their units, an Array
      #   takes the units of Record::METRICS
      # @param alone [Boolean] whether there is no other side to compare with
      # @raise [UsageError] the text can't be read, names an unknown metric, or compares without another side
      #: (String, metrics: (Array[String] | Hash[String, String]), ?alone: bool) -> Gate
      def self.parse(text, metrics:, alone: false)
        units = metrics.is_a?(Hash) ? metrics : metrics.to_h { |name| [name, Record::METRICS[name]&.unit || "ns"] }
        parts = text.split(/,|\bor\b/, -1)
        new((parts.empty? ? [""] : parts).map { |part| condition(part.strip, units, text, alone) })
      end

      # @api private
      def self.condition(part, units, text, alone)
        if alone && (VERDICTS.include?(part) || part.match?(/\d\s*[%x]\z/))
          raise UsageError, "--fail-if #{text}: there is nothing to compare with; write a limit such as objects > 1200"
        end

        return Condition.new(metric: part, text: part) if VERDICTS.include?(part)

        if (slower = SLOWER_BY.match(part))
          return Condition.new(metric: "slower", text: part, relative: true, limit: above_one(slower[:number], text))
        end

        found = CONDITION.match(part) or raise UsageError, "--fail-if #{text}: cannot read `#{part}`; " \
                                                           "write #{syntax(units, alone)}"
        unless units.key?(found[:metric])
          raise UsageError, "--fail-if #{text}: no metric #{found[:metric]}; there are #{units.keys.join(", ")}"
        end

        unit = units.fetch(found[:metric])
        Condition.new(metric: found[:metric], operator: found[:operator], **limit(found, unit, text, alone),
                      text: part, unit: unit)
      end
      private_class_method :condition

      # @api private
      def self.above_one(number, text)
        share = number.delete("_").to_f / 100
        share.positive? ? 1 + share : raise(UsageError, "--fail-if #{text}: must be more than 0%")
      end
      private_class_method :above_one

      # @api private
      def self.syntax(units, alone)
        return "METRIC > NUMBER[k|MB|ms], METRIC one of #{units.keys.join(", ")}" if alone

        "METRIC > NUMBER[ms|MB|%], slower by NUMBER%, or one of #{VERDICTS.join(", ")}"
      end
      private_class_method :syntax

      # @api private
      def self.limit(found, unit, text, alone)
        number = found[:number].delete("_").to_f
        case found[:unit]
        when "" then { limit: number, relative: false }
        when "%" then { limit: 1 + (number / 100), relative: true }
        when "x" then { limit: number, relative: true }
        else
          scales = UNITS.fetch(unit)
          allowed = "#{scales.keys.join(" ")}#{" % x" unless alone}"
          scale = scales[found[:unit]] or
            raise UsageError, "--fail-if #{text}: #{found[:metric]} takes #{allowed}, not #{found[:unit]}"
          { limit: number * scale, relative: false }
        end
      end
      private_class_method :limit

      # @return [Array<Condition>] the conditions, in the order in which they were typed
      attr_reader :conditions

      #: (Array[Condition]) -> void
      def initialize(conditions)
        @conditions = conditions
      end

      # Whether a condition compares two sides.
      #: () -> bool
      def relative? = conditions.any?(&:relative?)

      # Whether all conditions compare two sides: none of them can hold where the sides are the same.
      #: () -> bool
      def relative_only? = conditions.all?(&:relative?)

      # The conditions' metrics that were not measured.
      # @param metrics the measured metrics
      #: (Array[String]) -> Array[String]
      def unmeasured(metrics) = conditions.select(&:operator).map(&:metric).uniq - metrics

      # The conditions for which the block returns true.
      #: () { (Condition) -> bool } -> Array[Condition]
      def failed(&block) = conditions.select(&block)
    end
  end
end
