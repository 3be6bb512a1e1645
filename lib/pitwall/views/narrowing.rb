# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/errors"

module Pitwall
  module Views
    # Which part of a recording is meant: process, thread, state, label or request.
    class Narrowing
      # @param options [Hash] :process, :thread, :state, :labels, :request, :idle, :redact
      #: (Hash[Symbol, untyped]) -> void
      def initialize(options)
        @options = options
      end

      # @param segments [Array<Record::Segment>] to leave their idle threads out; none: nothing is left out
      #: (?Array[Record::Segment]) -> Analyse::Selection
      def selection(segments = [])
        thread, process, state, labels = @options.values_at(:thread, :process, :state, :labels)
        idle = Analyse::IdleThreads.find(segments) unless @options[:idle] || thread || state || labels
        labels = labels&.transform_values { |value| Analyse::Redaction.label(value) } if @options[:redact]
        number = state && Analyse::States.number(state)
        Analyse::Selection.new(thread: thread, process: process, state: number, labels: labels, without: idle)
      end

      # Segments of the process asked for.
      # @raise [UsageError] no such process
      #: (Array[Record::Segment]) -> Array[Record::Segment]
      def of_process(segments)
        selection = Analyse::Selection.new(process: @options[:process])
        selection.check(segments)
        segments.select { |segment| selection.segment?(segment) }
      end

      # Segments narrowed to the request asked for, and the row of it.
      # @param refused [Array<String>] what else was asked for that a request leaves nothing to choose for
      # @raise [UsageError] no such request, or something that it leaves nothing to choose for
      #: (Array[Record::Segment], ?Array[String]) -> [Array[Record::Segment], Analyse::Requests::Row]
      def of_request(segments, refused = [])
        keys = %i[process thread labels].select { |key| @options[key] }
        odd = [*refused, *keys.map { |key| Views.option_name(key) }].first
        raise UsageError, "--request #{@options[:request]} is one request in one thread: leave out #{odd}" if odd

        requests = Analyse::Requests.new(segments)
        row = requests.row(@options[:request])
        [[requests.narrowed(row)], row]
      end

      # An empty report would be taken for a program that never waited.
      # @raise [UsageError] the recording can't tell the state asked for
      #: (Array[Record::Segment]) -> void
      def check_state(segments)
        state = @options[:state] or return
        sampled = segments.select(&:sampled?)
        if sampled.empty?
          raise UsageError, "--state #{state}: the recording has no samples, and only these have states: leave it out"
        end
        return if sampled.any? { |segment| told?(segment, Analyse::States.number(state)) }

        ruby = sampled.first.header.ruby["version"]
        raise UsageError, "--state #{state}: #{ruby ? "Ruby #{ruby}" : "what was recorded"} told no thread states, " \
                          "as Ruby 3.2 and newer do: leave it out, or record with such a Ruby"
      end

      private

      def told?(segment, state)
        segment.header.thread_states? || segment.tallies.any? { |tally| tally.state == state }
      end
    end
  end
end
