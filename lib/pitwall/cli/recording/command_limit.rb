# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/cli/support/ending"
require "pitwall/cli/support/gate"

module Pitwall
  module CLI
    # `--fail-if` of verbs that count exactly what one command did: judged while it is reported, and turned into a
    # status where the command itself gave 0.
    module CommandLimit
      private

      # @param metrics [Hash{String => String}] as Gate.parse takes them
      def define_limit(parser, metrics, example)
        parser.on("--fail-if EXPR", "end with status 1 when it holds and the command gave 0: #{example}") do |text|
          @limits = text
          @options[:fail_if] = Gate.parse(text, metrics: metrics, alone: true)
        end
      end

      # Judges, once.
      # @yield for the value of a metric; nil or false where it is not known, and then @unknown says why
      def judge
        gate = @options[:fail_if]
        return if gate.nil? || @judged

        @judged = true
        failed = gate.failed do |condition|
          value = yield(condition.metric)
          value && condition.exceeded?(Analyse::Estimate.new(value, value, value))
        end
        return unless failed

        @exceeded = true
        @err.puts("pitwall: --fail-if #{@limits}: #{failed.verdict(yield(failed.metric))}")
      end

      # @return (Integer | Ending) how the command ends with its limit
      def limited(ending)
        return ending unless @options[:fail_if] && Ending.from(ending).status.zero?
        return Status::WORSE if @exceeded

        # A limit that nobody could hold against anything must not look as if it had been kept.
        unjudged = @judged ? @unknown : "there is nothing to judge by"
        return ending unless unjudged

        @err.puts("pitwall: --fail-if #{@limits}: cannot be judged: #{unjudged}")
        Status::CANNOT_MEASURE
      end
    end
  end
end
