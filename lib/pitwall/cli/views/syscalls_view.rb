# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/syscall_workers"
require "pitwall/record"
require "pitwall/show"

module Pitwall
  module CLI
    # The report of system calls, as `syscalls` and `report --view syscalls` show it: its options, the patterns in force, and the report as a string.
    module SyscallsView
      # What a report is of. name: for people · format: of a log, "recording" else · file: to be typed again
      About = Struct.new(:name, :format, :file, :warnings, keyword_init: true)
      FILE = ".pitwall.yml"
      # A user's file is never so long.
      LONGEST = 1 << 20
      private_constant :FILE, :LONGEST

      module_function

      # @param options [Hash] takes :patterns, :limit
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--patterns NAMES", Array, "study (the seven of 2017), all, or names such as scan,rrpi (all; of logs without results study)") { |names| options[:patterns] = names }
        parser.on("--limit N", Integer, "rows in each table") { |limit| options[:limit] = limit }
      end

      # Pitwall's table, with what `.pitwall.yml` in the working directory adds.
      # @param study [Boolean] the log has only what the study's had
      # @raise [UsageError] an entry that can't be read, a pattern there isn't
      #: (Hash[Symbol, untyped], ?study: bool) -> Analyse::SyscallPatterns
      def patterns(options, study: false)
        names = options[:patterns]
        study = true if names == ["study"]
        study = false if names && names != ["study"]
        names = nil if [["study"], ["all"]].include?(names)
        Analyse::SyscallPatterns.new(user: own, source: FILE, study: study, only: names)
      end

      # @api private
      def own
        return nil unless File.file?(FILE)

        require "psych"
        raise UsageError, "#{FILE}: longer than #{LONGEST} bytes" if File.size(FILE) > LONGEST

        whole = Psych.safe_load(File.read(FILE, encoding: "UTF-8"), filename: FILE) || {}
        raise UsageError, "#{FILE}: a table is wanted, such as syscalls: { patterns: [] }" unless whole.is_a?(Hash)

        part = whole["syscalls"] || {}
        raise UsageError, "#{FILE}: syscalls: a table is wanted, such as { patterns: [] }" unless part.is_a?(Hash)

        unknown = part.keys - ["patterns"]
        raise UsageError, "#{FILE}: syscalls: unknown key #{unknown.first}; there is patterns" if unknown.any?

        part["patterns"]
      rescue Psych::Exception, ArgumentError => error
        raise UsageError, "#{FILE}: #{error.message.lines.first.to_s.strip.sub(/\A\(\S+\): /, "")}"
      rescue SystemCallError => error
        raise UsageError, "#{FILE}: cannot be read: #{SystemCallError.new(error.errno).message}"
      end

      # Of a log.
      # @raise [BadRecording] it holds no calls
      #: (String, Hash[Symbol, untyped]) ?{ (String) -> void } -> [Analyse::SyscallReport, About]
      def of_log(file, options, &collapsed)
        log = Record::SyscallLog.open(file)
        table = patterns(options, study: log.bare?)
        report = collapsed ? Analyse::SyscallReport.of(log, patterns: table, &collapsed) : SyscallWorkers.report(log, table)
        raise BadRecording, "#{log.name}: holds no system calls that could be read" if report.calls.zero?

        [report, About.new(name: log.name.delete_prefix("#{Dir.pwd}/"), format: log.format, file: file, warnings: log.warnings)]
      end

      # Of recorded processes; only totals where calls were only counted, or where no rows are left of them.
      # @raise [UsageError] as {of_segments}
      #: (Array[Record::Segment], Hash[Symbol, untyped], file: String, **untyped) -> String
      def render_segments(segments, options, file:, warnings: [], width: Command::PIPE_WIDTH, palette: Show::Plain)
        traced = segments.select(&:syscalls?)
        return page(segments, options, warnings) if options[:format] == "html" && traced.any?

        sums = totals(traced)
        unless traced.any? && traced.none?(&:syscall_rows?) && (traced.any?(&:syscalls_counted?) || sums.any?)
          return render([of_segments(segments, options, file: file, warnings: warnings)], options, width: width, palette: palette)
        end

        totals = Show::SyscallTotals.new(sums, warnings: warnings, limit: options[:limit])
        case options[:format]
        when "json" then totals.json
        when "markdown" then totals.markdown
        else totals.text(width: width, palette: palette)
        end
      end

      # The page of a recording, which has all else that was recorded too.
      # @param found [Array(Analyse::SyscallReport, About), nil] what {of_segments} gave, where it has been asked already
      #: (Array[Record::Segment], Hash[Symbol, untyped], Array[Record::Warning], ?found: [Analyse::SyscallReport, About]?) -> String
      def page(segments, options, warnings, found: nil)
        require "pitwall/cli/page/page"
        Page.render(segments, warnings, start: { "view" => "syscalls" }, difference: options[:difference], syscalls: part(segments, options, found: found))
      end

      # What a recording's page has of system calls; nil where nobody looked at them.
      #: (Array[Record::Segment], ?Hash[Symbol, untyped], ?found: [Analyse::SyscallReport, About]?) -> (Show::SyscallsPart | Hash[String, untyped])?
      def part(segments, options = {}, found: nil)
        traced = segments.select(&:syscalls?)
        return if traced.empty?
        return Show::SyscallsPart.of_totals(totals(traced)) if traced.none?(&:syscall_rows?)

        report, about = found || of_segments(segments, options, file: "")
        Show::SyscallsPart.new(report: report, name: about.name, format: about.format)
      end

      # @api private
      def totals(segments)
        segments.each_with_object(Hash.new { |sums, name| sums[name] = [0, 0, 0] }) do |segment, sums|
          segment.syscall_totals.each { |name, counts| sums[name] = sums[name].zip(counts).map(&:sum) }
        end
      end

      # Of recorded processes.
      # @raise [UsageError] when none of them traced system calls
      #: (Array[Record::Segment], Hash[Symbol, untyped], file: String, ?warnings: Array[Record::Warning]) ?{ (String) -> void } -> [Analyse::SyscallReport, About]
      def of_segments(segments, options, file:, warnings: [], &collapsed)
        traced = segments.select(&:syscalls?)
        raise UsageError, "#{file}: holds no system calls: record them with pitwall syscalls -- CMD" if traced.empty?

        report = Analyse::SyscallReport.of(*traced, patterns: patterns(options), &collapsed)
        name = traced.map { |segment| segment.header.program }.compact.uniq.first(3).join(", ")
        [report, About.new(name: name, format: "recording", file: file, warnings: warnings)]
      end

      # @param reports [Array<Array(Analyse::SyscallReport, About)>] one, or two that are compared
      # @param options [Hash] :format, :limit
      #: (Array[[Analyse::SyscallReport, About]], Hash[Symbol, untyped], ?width: Integer, ?palette: untyped) -> String
      def render(reports, options, width: Command::PIPE_WIDTH, palette: Show::Plain)
        view = { limit: options[:limit] }
        shown = reports.map { |report, about| { report: report, name: about.name, format: about.format, file: about.file, warnings: about.warnings } }
        case options[:format]
        when "json" then reports.size == 1 ? Show::SyscallsJson.new(**shown[0], **view).to_s : Show::SyscallsJson.change(*shown, **view)
        when "html"
          return Show::SyscallsChangePage.new(*shown, base: Dir.pwd).to_s if reports.size == 2

          Show::SyscallsPage.new(Show::SyscallsPart.new(**shown[0].slice(:report, :name, :format, :warnings)), base: Dir.pwd).to_s
        when "markdown" then reports.size == 1 ? Show::SyscallsMarkdown.new(**shown[0], **view, base: Dir.pwd).to_s : Show::SyscallsMarkdown.change(*shown, **view)
        else
          look = { width: width, palette: palette, base: Dir.pwd }
          reports.size == 1 ? Show::SyscallsText.new(**shown[0], **view, **look).to_s : Show::SyscallsChange.new(*shown, **view, **look).to_s
        end
      end
    end
  end
end
