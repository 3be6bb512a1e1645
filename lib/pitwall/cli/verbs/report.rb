# frozen_string_literal: true

require "pitwall/cli/views/allocations_view"
require "pitwall/cli/support/command"
require "pitwall/cli/views/object_growth_view"
require "pitwall/cli/page/page"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/recording_options"
require "pitwall/cli/page/source_lines"
require "pitwall/cli/views/syscalls_view"
require "pitwall/record/measurements"
require "pitwall/show"

module Pitwall
  module CLI
    # `pitwall report FILE…`: any view of any recording.
    class Report < Command
      include RecordingOptions

      VIEWS = %w[flat calls tree bottom-up lines threads labels requests queries tests gc gc-cost allocations growth syscalls].freeze
      # Those that have an option of their own; --lines takes a name.
      OWN_OPTIONS = %w[tree bottom-up lines].freeze
      FORMATS = %w[text json markdown html].freeze
      # Views that weigh the call tree, and so can be of objects.
      WEIGHED = %i[flat tree bottom_up lines callers callees].freeze
      IN_MARKDOWN = %i[flat allocations growth syscalls requests queries tests].freeze
      # Options that only one view heeds, and those that it doesn't.
      OF_ALLOCATIONS = %i[by sort retained].freeze
      NOT_OF_ALLOCATIONS = %i[thread state labels request weight blackbox gc threshold apart].freeze
      # Options that the page itself has, or has no use for.
      NOT_OF_PAGES = %i[thread state labels request gc blackbox threshold limit apart idle audit all_frames by sort retained warmup].freeze
      private_constant :VIEWS, :OWN_OPTIONS, :FORMATS, :WEIGHED, :IN_MARKDOWN, :OF_ALLOCATIONS, :NOT_OF_ALLOCATIONS, :NOT_OF_PAGES

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
        def option_words = { "--view" => VIEWS, "--state" => Analyse::States.names, **AllocationsView.option_words }

        # The report as a string, for other verbs.
        # @param difference [Object, nil] what a run without Pitwall gave
        # @param command [Array<String>, nil] that was recorded
        # @raise [BadRecording]
        #: (String, ?view: Symbol?, ?width: Integer, ?palette: untyped, **untyped) -> String
        def render(path, view: nil, width: Command::PIPE_WIDTH, palette: Show::Plain, **options)
          options = { format: "text", weight: "wall", **options, views: view && [view] }.compact
          new(out: nil, err: nil).send(:render, [path], options, width, palette)
        end
      end

      #: (OptionParser) -> void
      def define_options(parser)
        define_recording_options(parser)
        parser.separator("")
        parser.separator("What to show")
        parser.on("--view VIEW", "#{VIEWS.join(", ")} (by what was recorded: samples flat, only traced calls calls, objects allocations, system calls syscalls)") { |name| view(view_named(name)) }
        parser.on("--tree", "the call tree from the root down") { view(:tree) }
        parser.on("--bottom-up", "methods by self weight, each with its callers") { view(:bottom_up) }
        parser.on("--callers NAME", "who calls a method, recursion counted once") { |name| view(:callers, callers: name) }
        parser.on("--callees NAME", "what a method calls, recursion counted once") { |name| view(:callees, callees: name) }
        parser.on("--lines NAME", "lines of a file or a method, with their source") { |name| view(:lines, within: name) }
        parser.on("--label-key NAME", "times by the values of a label") { |name| view(:labels, label_key: name) }
        parser.on("--predict PLACE", "what removing PATH:LINE or a method would save, with the GC it causes (a model)") { |place| view(:gc_cost, predict: place) }
        AllocationsView.define_options(parser, @options)
        ObjectGrowthView.define_options(parser, @options)
        parser.on("--threshold PCT", Float, "leave out of trees what is below so many percent (1)") { |percent| @options[:threshold] = percent }
        parser.on("--limit N", Integer, "rows in a table") { |limit| @options[:limit] = limit }
        parser.on("--apart", "each process by itself, instead of all added up") { @options[:apart] = true }
        parser.on("--idle", "count threads that waited for work all the time, and let all waiting stand in the table") { @options[:idle] = true }
        parser.on("--all-frames", "with --tree: every frame, also of long runs of other code's") { @options[:all_frames] = true }
        parser.on("--why", "of FILE.jsonl: how to get the profiles that compare --why shows") { @options[:why] = true }
        parser.on("--audit", "list every class of string the recording holds") { @options[:audit] = true }
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
        look = to_file? ? [PIPE_WIDTH, Show::Plain] : [width, palette]
        text = measured ? SavedMeasurement.new(files).render(@options.fetch(:format, "text"), *look) : render(files, @options, *look)
        to_file? ? OutputFile.write(@options[:out]) { |out| out.puts(text) } : @out.puts(text)
        Status::OK
      end

      private

      def to_file? = @options[:out] && @options[:out] != "-"

      # What bench and compare kept.
      def measurements?(files)
        return false unless files.any? { |file| Record::Measurements.file?(file) }

        require "pitwall/cli/measuring/saved_measurement"
        true
      end

      # What was measured is shown whole.
      def check_measured(files)
        again = SavedMeasurement.new(files)
        raise UsageError, "--why: #{again.without_profiles}" if @options[:why]

        check_page([]) if @options[:format] == "html"
        odd = (@options.keys - %i[format out]).first or return
        name = odd == :views ? option(@options[:views].first) : RecordingOptions.option_name(odd)
        raise UsageError, "#{name}: is for recordings, and #{files.first} holds what bench or compare measured, which is shown whole: leave it out"
      end

      def check
        raise UsageError, "--why: is of what compare measured; of two recordings pitwall compare A.pit B.pit says why" if @options[:why]

        check_limit
        threshold = @options[:threshold]
        raise UsageError, "--threshold #{threshold}: must be from 0 to 100 percent" unless threshold.nil? || threshold.between?(0, 100)

        check_format
      end

      # JSON holds every view that was asked for, text one, Markdown the flat table.
      def check_format
        format = @options.fetch(:format, "text")
        views = @options.fetch(:views, [])
        return check_page(views) if format == "html"
        raise UsageError, "--no-source is for --format html" if @options.key?(:source)

        if format == "markdown"
          refused = @options[:audit] ? "--audit" : unfit_for_markdown(views)
          others = IN_MARKDOWN.drop(1)
          raise UsageError, "--format markdown holds the flat table, or --view #{others[0..-2].join(", ")} or #{others.last}: leave out #{refused}, or take --format text or json" if refused
        elsif format == "text" && views.uniq.size > 1
          raise UsageError, "--format text shows one view: ask for one of #{views.uniq.map { |view| option(view) }.join(", ")}, or take --format json"
        end
      end

      # The page has all views, and asks for threads, states and ranges itself.
      def check_page(views)
        idle = NOT_OF_PAGES.find { |name| @options[name] }
        refused = views.any? ? option(views.first) : idle && RecordingOptions.option_name(idle)
        raise UsageError, "--format html: the page has all views and filters of its own: leave out #{refused}" if refused
        raise UsageError, "--format html: a terminal shows no page: add --out FILE.html, or take pitwall view" if terminal?(@out) && @options[:out].nil?
      end

      def unfit_for_markdown(views)
        view = (views - IN_MARKDOWN).first
        return option(view) if view

        %i[apart threshold].find { |name| @options[name] }&.then { |name| RecordingOptions.option_name(name) }
      end

      def option(view)
        name = view.to_s.tr("_", "-")
        "--#{"view " if (VIEWS - OWN_OPTIONS).include?(name)}#{name}"
      end

      def view_named(name)
        return name.tr("-", "_").to_sym if VIEWS.include?(name)
        raise UsageError, "--view #{name}: use --#{name} NAME" if %w[callers callees].include?(name)

        raise UsageError, "--view #{name}: it takes #{VIEWS.join(", ")}"
      end

      def render(files, options, width, palette)
        @options = options
        segments, warnings = read(files)
        return audit(segments, width, palette) if options[:audit]
        warnings += Analyse::TraceFilters.warnings(segments, base: Project.folder_of(segments))
        return page(segments, warnings, files) if options[:format] == "html"

        @default = default_view(segments)
        check_views
        if last_view == :syscalls
          return SyscallsView.render_segments(only_mine(of_process(segments)), options, file: files.join(" "), warnings: warnings, width: width, palette: palette)
        end
        if %i[allocations growth].include?(last_view)
          chosen = of_process(segments)
          view = last_view == :growth ? ObjectGrowthView : AllocationsView
          return view.render(only_mine(chosen), warnings, options, files: files, findings: findings(chosen, files), width: width, palette: palette)
        end

        check_state(segments)
        segments = only_request(segments) if options[:request]
        report = Analyse::Report.new(segments, query(segments))
        report.tree
        check_recorded(report)
        @findings = findings(report.segments, files, report.query.selection)
        case options[:format]
        when "json" then json(report, warnings)
        when "markdown" then markdown(report, warnings)
        else text(report, files, warnings, width, palette)
        end
      end

      def only_mine(segments) = @options[:only_mine] ? Analyse::OnlyMine.new(Project.origin).call(segments) : segments

      def findings(segments, files, selection = nil)
        Project.findings(segments, file: file_name(files), command: @options[:command], **{ selection: selection }.compact)
      end

      def page(segments, warnings, files)
        check_recorded(Analyse::Report.new(segments, Analyse::Report::Query.new(weight: @options[:weight].to_sym))) if @options[:weight] && @options[:weight] != "wall"
        chosen = of_process(segments)
        Page.render(chosen, warnings, findings: findings(chosen, files), origin: Project.origin, source: @options.fetch(:source, true), redacted: @options.fetch(:redact, false),
                    start: { "weight" => @options[:weight], "mine" => (@options[:only_mine] ? "only" : nil) }.compact, difference: @options[:difference])
      end

      # What the recording is of.
      def default_view(segments)
        return :flat if segments.any?(&:sampled?)
        return (["wall", "cpu", nil].include?(@options[:weight]) ? :calls : :flat) if segments.any?(&:traced?)

        return :syscalls if segments.any?(&:syscalls?) && segments.none?(&:allocation_totals)

        segments.any?(&:allocation_totals) && @options[:weight].nil? ? :allocations : :flat
      end

      # Wall time, but where only objects were followed.
      def weight(segments)
        @options.fetch(:weight) { only_objects?(segments) && WEIGHED.include?(last_view) ? "objects" : "wall" }.to_sym
      end

      # An option that changes nothing would be believed to have changed something.
      # @raise [UsageError]
      def check_views
        if @options[:warmup] && last_view != :growth
          raise UsageError, "--warmup is for the view of growth: add --view growth, or leave it out"
        elsif last_view == :growth && (odd = OF_ALLOCATIONS.find { |name| @options[name] })
          raise UsageError, "#{RecordingOptions.option_name(odd)} is for the view of allocations: add --view allocations, or leave it out"
        elsif %i[allocations growth syscalls].include?(last_view)
          idle = NOT_OF_ALLOCATIONS.find { |name| @options[name] }
          raise UsageError, "#{RecordingOptions.option_name(idle)}: the view of #{last_view} has all of a process: leave it out, or ask for another --view" if idle
        elsif (idle = OF_ALLOCATIONS.find { |name| @options[name] })
          raise UsageError, "#{RecordingOptions.option_name(idle)} is for the view of allocations: add --view allocations, or leave it out"
        end
      end

      def of_process(segments)
        selection = Analyse::Selection.new(process: @options[:process])
        selection.check(segments)
        segments.select { |segment| selection.segment?(segment) }
      end

      # @raise [UsageError] when something is asked for that was not recorded
      def check_recorded(report)
        weight = report.weight
        traced = report.summary.traced?
        followed = report.segments.any?(&:allocation_totals)
        views = @options.fetch(:views, [])
        asked = @options.fetch(:views, []).include?(:calls) ? "--view calls" : "--weight #{weight}"
        if !traced && (asked == "--view calls" || %i[calls wait].include?(weight))
          raise UsageError, "#{asked}: the recording has no calls; pitwall trace -- CMD counts them"
        elsif !followed && (weight == :gc || (!traced && %i[objects bytes].include?(weight)))
          raise UsageError, "#{asked}: no objects were followed in this recording; pitwall allocations -- CMD does that"
        elsif views.include?(:gc_cost) && !followed && @options[:predict].nil?
          raise UsageError, "--view gc-cost: no objects were followed in this recording; pitwall profile --allocations -- CMD does that"
        end
        if @options[:labels] && (views & %i[gc gc_cost]).any?
          raise UsageError, "--label: collections are of the whole process: leave it out, or see (marking) and (sweeping) below what ran under the label in --tree"
        end
        aside = views & %i[queries tests]
        if aside.any? && (odd = %i[thread state].find { |name| @options[name] })
          raise UsageError, "#{RecordingOptions.option_name(odd)}: #{aside.first} are not told by thread and state: leave it out, or see --view labels"
        end
        check_traced(report, followed, views) if traced && report.segments.none?(&:sampled?)
      end

      # What a trace could have counted, or can't.
      def check_traced(report, followed, views)
        weight = report.weight
        of_objects = followed && %i[objects bytes gc].include?(weight)
        if %i[cpu objects bytes].include?(weight) && !of_objects && !report.summary.traced_with?(weight.to_s)
          mend = weight == :bytes ? "pitwall trace --bytes -- CMD counts them" : "record without --no-#{weight}"
          raise UsageError, "--weight #{weight}: this trace has none; #{mend}"
        elsif views.include?(:lines) && !of_objects
          raise UsageError, "#{@options[:within] ? "--lines" : "--view lines"}: calls have no lines; pitwall profile -- CMD samples them, and --callees NAME has what a method calls"
        end
      end

      def audit(segments, width, palette)
        audit = Show::Audit.new(Analyse::Strings.kinds(segments, base: Dir.pwd))
        @options[:format] == "json" ? audit.json : audit.text(width: width, palette: palette)
      end

      # @raise [UsageError] no such request
      def only_request(segments)
        refused = ["--apart"].select { @options[:apart] } + (views & %i[requests tests gc gc_cost]).map { |name| option(name) }
        segments, @request = of_request(segments, refused)
        segments
      end

      def query(segments)
        given = @options.slice(:threshold, :gc, :blackbox, :callers, :callees, :within, :predict, :label_key)
        given[:request] = @request
        given.update(only_mine: @options.fetch(:only_mine, false), origin: Project.origin, waits: @options.fetch(:idle, false))
        given[:threshold] ||= 0.0 if @options[:format] == "json"
        Analyse::Report::Query.new(weight: weight(segments), selection: selection(segments), **given)
      end

      def view(name, **options)
        (@options[:views] ||= []) << name
        @options.update(options)
      end

      def views = @options.fetch(:views, [@default])

      def last_view = views.last

      def markdown(report, warnings)
        limit = @options[:limit] || 20
        warnings = warnings.map(&:message)
        return Show::TestsMarkdown.new(report, warnings: warnings, limit: limit).to_s if last_view == :tests

        if %i[requests queries].include?(last_view)
          return Show::QueriesMarkdown.new(report, last_view, warnings: warnings, limit: limit, base: Dir.pwd, findings: @findings).to_s
        end
        Show::MarkdownReport.new(report, warnings: warnings, limit: limit, base: Dir.pwd, findings: @findings).to_s
      end

      def json(report, warnings)
        parts = views
        Show::JsonReport.new(report, warnings: warnings.map(&:to_h), parts: parts, limit: @options[:limit], difference: @options[:difference], findings: @findings)
                        .to_s(apart: @options.fetch(:apart, false))
      end

      def text(report, files, warnings, width, palette)
        source = SourceLines.new(report.summary.headers, repository: Project.repository) if last_view == :lines
        shared = { width: width, palette: palette, base: Dir.pwd, source: source, limit: @options[:limit], fit: terminal?(@out) && !to_file?, all_frames: @options.fetch(:all_frames, false) }
        shared[:file] = file_name(files)
        whole = { warnings: warnings.map(&:message), difference: @options[:difference], findings: @findings }
        return Show::TextReport.new(report, **shared, **whole).to_s(last_view) unless @options[:apart]

        # What is of the whole stands in the first part.
        report.apart.each_with_index.map do |part, at|
          Show::TextReport.new(part, **shared, **(at.zero? ? whole : {})).to_s(last_view)
        end.join("\n\n")
      end

      def file_name(files) = Project.typed(files)
    end
  end
end
