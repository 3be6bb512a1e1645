# frozen_string_literal: true

require "pitwall/cli/recording/page"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/recording_options"
require "pitwall/cli/support/command"
require "pitwall/record/measurements"
require "pitwall/views"

module Pitwall
  module CLI
    # `pitwall report FILE…`: any view of any recording. Views says which there are.
    class Report < Command
      include RecordingOptions

      FORMATS = %w[text json markdown html].freeze
      PERCENT = /\A\d+(?:\.\d+)?%?\z/.freeze
      private_constant :FORMATS, :PERCENT

      class << self
        #: () -> String
        def summary = "shows a recording, or what bench and compare measured"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall report a.pit --tree --only-mine", "the call tree, application only"],
            ["pitwall report a.pit --lines app/models/order.rb", "the lines of a file"]
          ]
        end

        #: () -> String
        def usage = "[options] (FILE.pit… | FOLDER | FILE.jsonl)"

        #: () -> Hash[String, Array[String]]
        def option_words = { **Views.option_words, "--state" => Analyse::States.names }

        # The report as a string, for other verbs.
        # @param difference [Object, nil] what a run without Pitwall gave
        # @param command [Array<String>, nil] that was recorded
        # @param options [Hash] as this verb's parser gives them: {limit: 3, apart: true}
        # @raise [BadRecording]
        #: (String, ?width: Integer, ?palette: untyped, ?difference: untyped, **untyped) -> String
        def render(path, width: Command::PIPE_WIDTH, palette: Show::Plain, difference: nil, command: nil, **options)
          report = new(out: nil, err: nil, options: { format: "text", weight: "wall", **options })
          screen = Views::Screen.new(width: width, palette: palette)
          report.render([path], screen, difference: difference, command: command)
        end
      end

      # @param options [Hash] as the parser gives them
      #: (out: IO?, err: IO?, ?options: Hash[Symbol, untyped]) -> void
      def initialize(out:, err:, options: {})
        super(out: out, err: err)
        @options = options.compact
      end

      #: (OptionParser) -> void
      def define_options(parser)
        define_recording_options(parser)
        parser.separator("")
        parser.separator("What to show")
        parser.on("--view VIEW", Views.help) { |name| (@options[:views] ||= []) << Views.asked_for(name) }
        Views.all.each { |view| view.define_options(parser, @options) }
        define_table_options(parser)
        parser.separator("")
        parser.separator("Where to")
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.on("--out FILE", "instead of standard output") { |file| @options[:out] = file }
        parser.on("--no-source", "with --format html: leave out the lines of source") { @options[:source] = false }
      end

      #: (Array[String]) -> Integer
      def run(files)
        raise UsageError, "no recording: pitwall report FILE.pit" if files.empty?

        measured = measurements?(files)
        measured ? check_measured(files) : check
        OutputFile.check(@options[:out], files) if to_file?
        text = measured ? render_measured(files) : render(files, screen)
        to_file? ? OutputFile.write(@options[:out]) { |out| out.puts(text) } : @out.puts(text)
        Status::OK
      end

      # Options, what was read, the view, its drawing.
      # @raise [UsageError, BadRecording]
      #: (Array[String], Views::Screen, ?difference: untyped, ?command: Array[String]?) -> String
      def render(files, screen, difference: nil, command: nil)
        asked = Views::Asked.new(NativeNames.typed(@options))
        segments, warnings = read(files)
        return audit(segments, asked, screen) if asked.audit?

        warnings += Analyse::TraceFilters.warnings(segments, base: Project.folder_of(segments))
        subject = Views::Subject.new(
          asked, segments, warnings, files: files, typed: Project.typed(files), screen: screen,
          difference: difference,
          application: Project.application(files, command: command, filters: asked.typed_filters)
        )
        RecordingOptions.telling_of_native(@folded) do
          asked.html? ? Page.of(subject) : subject.view.draw(subject)
        end
      end

      private

      def define_table_options(parser)
        { "--threshold" => "leave out of trees and graphs what is below so many percent (1)",
          "--min" => "the same as --threshold; 1 and 1% mean the same" }.each do |option, words|
          parser.on("#{option} PCT", PERCENT, words) { |percent| @options[:threshold] = percent.to_f }
        end
        parser.on("--limit N", Integer, "rows in a table") { |limit| @options[:limit] = limit }
        parser.on("--apart", "each process by itself, instead of all added up") { @options[:apart] = true }
        parser.on("--idle", "count threads that waited for work all the time, " \
                            "and let all waiting stand in the table") { @options[:idle] = true }
        parser.on("--all-frames", "with --tree: every frame, also of long runs of other code's") do
          @options[:all_frames] = true
        end
        parser.on("--why", "of FILE.jsonl: how to get the profiles that compare --why shows") { @options[:why] = true }
        parser.on("--audit", "list every class of string the recording holds") { @options[:audit] = true }
      end

      def to_file? = @options[:out] && @options[:out] != "-"

      def screen
        return Views::Screen.new(width: PIPE_WIDTH) if to_file?

        Views::Screen.new(width: width, palette: palette, fit: terminal?(@out))
      end

      # What bench and compare kept.
      def measurements?(files)
        return false unless files.any? { |file| Record::Measurements.file?(file) }

        require "pitwall/cli/measuring/saved_measurement"
        true
      end

      # What was measured is shown whole.
      def check_measured(files)
        raise UsageError, "--why: #{SavedMeasurement.new(files).without_profiles}" if @options[:why]

        asked = Views::Asked.new(@options.except(:views))
        asked.check_page(terminal: page_to_terminal?) if asked.html?
        odd = (@options.keys - %i[format out]).first or return
        name = odd == :views ? @options[:views].first.option : Views.option_name(odd)
        raise UsageError, "#{name}: is for recordings, and #{files.first} holds what bench or compare measured, " \
                          "which is shown whole: leave it out"
      end

      def render_measured(files)
        SavedMeasurement.new(files).render(@options.fetch(:format, "text"), *screen.to_h.values_at(:width, :palette))
      end

      def check
        if @options[:why]
          raise UsageError, "--why: is of what compare measured; " \
                            "of two recordings pitwall compare A.pit B.pit says why"
        end

        check_limit
        Views::Asked.new(@options).check(terminal: page_to_terminal?)
      end

      def page_to_terminal? = terminal?(@out) && @options[:out].nil?

      def audit(segments, asked, screen)
        audit = Show::Audit.new(Analyse::Strings.kinds(segments, base: Dir.pwd), hints: Views::Hints)
        asked.format == "json" ? audit.json : audit.text(**screen.to_h.slice(:width, :palette))
      end
    end
  end
end
