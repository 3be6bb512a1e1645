# frozen_string_literal: true

require "pitwall/cli/support/command"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/recording_options"
require "pitwall/show"

module Pitwall
  module CLI
    # `pitwall export FILE --to FORMAT`: recordings in the field's formats.
    class Export < Command
      include RecordingOptions

      class << self
        #: () -> String
        def summary = "a recording for another tool: pprof, OTLP, firefox, speedscope…"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall export a.pit --to speedscope --out a.json", "for speedscope.app"],
            ["pitwall export a.pit --to pprof --weight cpu --out a.pb.gz", "for go tool pprof"]
          ]
        end

        #: () -> String
        def usage = "FILE.pit… --to FORMAT --out OUT [options]"

        #: () -> Hash[String, Array[String]]
        def option_words = { "--state" => Analyse::States.names }
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.on("--to FORMAT", Show::Export.names, Show::Export.names.join(", ")) { |format| @options[:to] = format }
        parser.on("--out OUT", "the file to write; - is standard output") { |file| @options[:out] = file }
        parser.on("--idle", "count threads that waited for work all the time (formats with a track a thread always " \
                            "show them)") do
          @options[:idle] = true
        end
        parser.separator("")
        define_recording_options(parser)
      end

      #: (Array[String]) -> Integer
      def run(files)
        if files.empty?
          raise UsageError, "no recording: pitwall export FILE.pit --to #{Show::Export.names.join("|")} --out OUT"
        end
        raise UsageError, "no format: add --to #{Show::Export.names.join(" or --to ")}" unless @options[:to]
        raise UsageError, "nowhere to write: add --out FILE (- is standard output)" unless @options[:out]

        check
        @options = NativeNames.typed(@options)
        OutputFile.check(@options[:out], files) unless @options[:out] == "-"
        segments, warnings = read(files)
        segments = RecordingOptions.telling_of_native(@folded) { filtered(segments) }
        selection.check(segments)
        narrowing.check_state(segments)
        @options[:out] == "-" ? write(segments, @out) : OutputFile.write(@options[:out]) { |out| write(segments, out) }
        warnings.each { |warning| @err.puts("pitwall: #{warning}") }
        Status::OK
      end

      private

      def filters = @filters ||= Views::Filters.of(@options, Project.origin)

      # The segments with the samples that are asked for.
      # @raise [UsageError]
      def filtered(segments)
        timed = filters.in_time(segments)
        timed, @request = narrowing.of_request(timed) if @options[:request]
        filters.in_focus(timed).tap { |kept| filters.check_left(segments, kept, selection: selection) }
      end

      def only_mine? = Views::Filters.only_mine?(@options)

      # Of a request's time its own rows.
      def selection(segments = [])
        narrowing.selection(segments).tap { |chosen| chosen.labels = @request.labels if @request }
      end

      def format_class = Show::Export[@options[:to]]

      # @raise [UsageError]
      def check
        to, weight = @options.values_at(:to, :weight)
        Views::Filters.check_weight(@options, weight)
        if weight && format_class.timeline? && !Analyse::Weights::SAMPLED.include?(weight.to_sym)
          raise UsageError, "--weight #{weight} has no time line for --to #{to}: use --to collapsed, which " \
                            "speedscope opens as well, or pprof"
        elsif !format_class.folds? && @options[:gc]
          raise UsageError, "--gc doesn't go with --to #{to}: use --to collapsed, which speedscope opens as well"
        end
      end

      def write(segments, out)
        export = RecordingOptions.telling_of_native(@folded) { made_of(segments) }
        export.missing.each { |line| @err.puts("pitwall: --to #{@options[:to]}: #{line}") }
        export.write(out)
      end

      # The format, of what it takes (Show::Export::Format).
      # @raise [UsageError] the recording has none of that
      def made_of(segments)
        return format_class.new(report(segments)) if format_class.folds?

        format_class.timeline? ? refuse_sampleless(segments) : refuse_weightless(segments)
        chosen = selection(format_class.timeline? ? [] : segments)
        segments, chosen = filters.frame_filter(segments)&.narrow(segments, chosen) || [segments, chosen]
        segments, chosen = Analyse::OnlyMine.new(Project.origin).narrow(segments, chosen) if only_mine?
        segments, chosen = filters.box(segments)&.narrow(segments, chosen) || [segments, chosen]
        format_class.new(segments, *@options[:weight]&.to_sym, selection: chosen)
      end

      # @raise [UsageError]
      def refuse_sampleless(segments)
        to = @options[:to]
        return unless segments.all? { |segment| segment.row_count.zero? && segment.open_rows.empty? }
        raise UsageError, "--to #{to}: nothing was sampled in request #{@request.number}" if @request
        if segments.any?(&:traced?)
          raise UsageError, "--to #{to} draws samples over time, and a trace has none: use --to collapsed, callgrind " \
                            "or pprof"
        end

        other = "none were taken"
        if segments.any?(&:allocation_totals)
          other = "use --to pprof, or --to collapsed --weight objects, which speedscope opens as well"
        end
        raise UsageError, "--to #{to} draws samples over time, and the recording has none: #{other}"
      end

      # @raise [UsageError]
      def refuse_weightless(segments)
        to, weight = @options.values_at(:to, :weight)
        weights = Analyse::Weights.of(segments, selection)
        if weights.empty?
          raise UsageError, "--to #{to}: the recording has nothing to weigh: no samples, calls or objects"
        end
        unless weight.nil? || weights.include?(weight.to_sym)
          raise UsageError, "--weight #{weight}: not in this recording; it has #{weights.join(", ")}, and --to #{to} " \
                            "holds them all"
        end
      end

      # Of the weight that `pitwall report` takes.
      # @raise [UsageError] nothing has any of it
      def report(segments)
        weight = @options.fetch(:weight) { Views::Recorded.new(segments).usual_weight }.to_sym
        query = Analyse::Report::Query.new(
          weight: weight, selection: selection(segments), gc: @options.fetch(:gc, :happened), origin: Project.origin,
          only_mine: only_mine?, blackbox: @options.fetch(:blackbox, []), filters: filters
        )
        Analyse::Report.new(segments, query).tap { |report| refuse_empty(segments, weight) if report.total.zero? }
      end

      def refuse_empty(segments, weight)
        narrowed = %i[labels thread state process request time focus].select { |name| @options[name] }
        narrowed = narrowed.map { |name| Views.option_name(name) }
        others = Analyse::Weights.of(segments, selection) - [weight, :retained, :retained_bytes]
        mends = [*("leave out #{narrowed.join(", ")}" if narrowed.any?),
                 *("try --weight #{others.join(", ")}" if others.any?)]
        raise UsageError, "--to #{@options[:to]}: nothing #{"of that part " if narrowed.any?}of the recording has " \
                          "any weight #{weight}: #{mends.empty? ? "it has none to export" : mends.join(", or ")}"
      end
    end
  end
end
