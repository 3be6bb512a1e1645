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

      # Judges, once. Names each limit that is exceeded.
      # @yield for the value of a metric; nil or false where it is not known, and then @unknown says why
      def judge
        gate = @options[:fail_if]
        return if gate.nil? || @judged

        @judged = true
        @unjudged = []
        gate.conditions.each do |condition|
          value = yield(condition.metric)
          if !value
            @unjudged << "#{condition.metric} cannot be judged: #{@unknown}"
          elsif condition.exceeded?(Analyse::Estimate.new(value, value, value))
            @exceeded = true
            put_limit(condition.verdict(value))
          end
        end
      end

      # @return (Integer | Ending) how the command ends with its limit
      def limited(ending)
        return ending unless @options[:fail_if] && Ending.from(ending).status.zero?

        # A limit that nobody could hold against anything must not look as if it had been kept.
        unjudged = @judged ? @unjudged.uniq : ["cannot be judged: there is nothing to judge by"]
        unjudged.each { |text| put_limit(text) }
        return Status::WORSE if @exceeded

        unjudged.empty? ? ending : Status::CANNOT_MEASURE
      end

      def put_limit(text) = @err.puts("pitwall: --fail-if #{@limits}: #{text}")
    end
  end
end
