# frozen_string_literal: true

require "pitwall/cli/recording/command_limit"
require "pitwall/cli/recording/page"
require "pitwall/cli/recording/project"
require "pitwall/views"

module Pitwall
  module CLI
    # For a verb that runs a command (RecordedCommand), reports what was recorded as one view, and judges `--fail-if` by
    # it. The verb says which view ({#view_of}), what was asked of it ({#asked}), and judges ({#judge_segments}).
    module ViewReport
      include CommandLimit

      FORMATS = %w[text json markdown html].freeze
      private_constant :FORMATS

      private

      # @param rows [String] what --limit counts
      def define_report_options(parser, rows:)
        parser.on("--limit N", Integer, rows) { |limit| @options[:limit] = limit }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.separator("")
      end

      def render(recording, _difference, width:, palette:)
        found = Record.read(recording)
        judge_segments(found.segments)
        view = view_of(found.segments)
        subject = Views::Subject.new(
          Views::Asked.new(asked(view)), found.segments, found.warnings,
          files: [recording], typed: Project.typed([recording]),
          application: Project.application([recording], command: @command),
          screen: Views::Screen.new(width: width, palette: palette)
        )
        return view.draw(subject) unless @options[:format] == "html"

        view.check(subject)
        Page.of(subject)
      end

      # Options for Views::Asked.
      def asked(view) = @options.slice(:format, :limit, *view.own_options)

      # A gate is judged even where no report is wanted.
      def show(recording, summary, difference)
        judge_segments(Record.read(recording).segments) if @options[:quiet] && !@options[:out]
        super
      end

      # There are no samples for other programs to show.
      def closing(summary, difference) = summary.closing(difference, elsewhere: false)
    end
  end
end
