# frozen_string_literal: true

require "pitwall/cli/recording/recorded_command"
require "pitwall/cli/recording/recording_options"

module Pitwall
  module CLI
    # What verbs have in common whose report is about methods: how it is to look.
    module MethodReport
      FORMATS = %w[text json markdown html].freeze
      private_constant :FORMATS

      private

      # @param weights [Array<String>] those that can be recorded
      def define_report_options(parser, weights)
        parser.separator("What to show")
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.on("--weight WEIGHT", weights, "#{weights.join(", ")} (wall)") { |weight| @options[:weight] = weight }
        parser.on("--limit N", Integer, "rows in a table") { |limit| @options[:limit] = limit }
        RecordingOptions.define_filters(parser, @options, time: timed?)
        RecordingOptions.define_blackbox(parser, @options)
        parser.on("--only-mine", "only the application's frames, with what they call") { @options[:only_mine] = true }
        parser.on("--apart", "each process by itself, instead of all added up") { @options[:apart] = true }
      end

      def report_options
        { format: @options.fetch(:format, "text"), weight: @options.fetch(:weight, "wall"),
          limit: @options[:limit], only_mine: @options[:only_mine], apart: @options.fetch(:apart, false),
          **@options.slice(*Views::Filters::KEYS, :blackbox) }
      end

      # Has what is recorded times, for --time?
      def timed? = true

      def check_report_options
        if @options[:apart] && @options[:format] == "markdown"
          raise UsageError, "--format markdown holds the flat table of all processes: leave out --apart"
        end

        super
      end
    end
  end
end
