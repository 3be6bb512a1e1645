# frozen_string_literal: true

require "pitwall/cli/command"
require "pitwall/cli/recording_options"
require "pitwall/show"

module Pitwall
  module CLI
    # `pitwall export FILE --to FORMAT`: recordings in the field's formats.
    class Export < Command
      include RecordingOptions

      FORMATS = %w[collapsed speedscope callgrind].freeze
      private_constant :FORMATS

      class << self
        #: () -> String
        def summary = "a recording in another format: #{FORMATS.join(", ")}"

        #: () -> String
        def usage = "FILE.pit… --to FORMAT --out OUT [options]"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.on("--to FORMAT", FORMATS, FORMATS.join(", ")) { |format| @options[:to] = format }
        parser.on("--out OUT", "the file to write; - is standard output") { |file| @options[:out] = file }
        parser.separator("")
        define_recording_options(parser)
      end

      #: (Array[String]) -> Integer
      def run(files)
        raise UsageError, "no recording: pitwall export FILE.pit --to #{FORMATS.join("|")} --out OUT" if files.empty?
        raise UsageError, "no format: add --to #{FORMATS.join(" or --to ")}" unless @options[:to]
        raise UsageError, "nowhere to write: add --out FILE (- is standard output)" unless @options[:out]

        check
        OutputFile.check(@options[:out], files) unless @options[:out] == "-"
        segments, warnings = read(files)
        selection.check(segments)
        @options[:out] == "-" ? write(segments, @out) : OutputFile.write(@options[:out]) { |out| write(segments, out) }
        warnings.each { |warning| @err.puts("pitwall: #{warning}") }
        Status::OK
      end

      private

      # A time line shows what ran when; folding is for sums.
      def check
        return unless @options[:to] == "speedscope"

        counted = Analyse::CallTreeBuilder::SITE_WEIGHTS.keys.map(&:to_s) & [@options[:weight]]
        raise UsageError, "--weight #{counted.first} has no time line for --to speedscope: use --to collapsed, which speedscope opens as well" if counted.any?
        return unless @options[:blackbox] || @options[:gc]

        raise UsageError, "--blackbox and --gc don't go with --to speedscope: use --to collapsed, which speedscope opens as well"
      end

      # @raise [UsageError]
      def refuse_sampleless(segments)
        return unless segments.all? { |segment| segment.row_count.zero? && segment.open_rows.empty? }
        raise UsageError, "--to speedscope draws samples over time, and a trace has none: use --to collapsed or callgrind" if segments.any?(&:traced?)

        other = segments.any?(&:allocation_totals) ? "use --to collapsed --weight objects, which speedscope opens as well" : "none were taken"
        raise UsageError, "--to speedscope draws samples over time, and the recording has none: #{other}"
      end

      def write(segments, out)
        weight = @options.fetch(:weight, "wall").to_sym
        case @options[:to]
        when "collapsed"
          query = Analyse::Report::Query.new(weight: weight, selection: selection, gc: @options.fetch(:gc, :happened), blackbox: @options.fetch(:blackbox, []))
          Show::Export::Collapsed.write(Analyse::Report.new(segments, query).tree, weight, out)
        when "callgrind"
          report = Analyse::Report.new(segments, Analyse::Report::Query.new(weight: weight, selection: selection, gc: @options.fetch(:gc, :happened), blackbox: @options.fetch(:blackbox, [])))
          Show::Export::Callgrind.new(report).write(out)
        when "speedscope"
          refuse_sampleless(segments)
          name = segments.map { |segment| segment.header.program }.compact.uniq.join(", ")
          Show::Export::Speedscope.new(segments, weight, selection: selection, name: name).write(out)
        end
      end
    end
  end
end
