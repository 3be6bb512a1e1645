# frozen_string_literal: true

require "pitwall/cli/support/command"
require "pitwall/cli/support/gate"
require "pitwall/cli/support/output_file"
require "pitwall/cli/recording/page"
require "pitwall/cli/recording/syscall_sources"
require "pitwall/record/syscall_log"
require "pitwall/views"

module Pitwall
  module CLI
    # `pitwall syscalls LOG`: a log of file-system calls, explained; `LOG LOG2`: what changed from one to the other. A
    # command (`-- CMD`) is traced by SyscallsCommand.
    class Syscalls < Command
      FORMATS = %w[text json markdown html].freeze
      # Of --fail-if, with their units; beside them each pattern by its name (scan > 100).
      METRICS = { "calls" => "count", "unexplained" => "count", "explained" => "count", "failed" => "count",
                  "saved" => "count", "time" => "ns" }.freeze
      RECORDING = "PITWALL ".b
      private_constant :FORMATS, :METRICS, :RECORDING

      class << self
        #: () -> String
        def summary = "which file-system calls, in what patterns, what to do"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall syscalls -- bin/rails runner 1", "why does the boot ask for files?"],
            ["pitwall syscalls strace.log", "the same of a log"]
          ]
        end

        #: () -> String
        def usage = "[options] (LOG [LOG2] | -- CMD…)"

        #: () -> Array[singleton(Command)]
        def other_forms
          require "pitwall/cli/recording/syscalls_command"
          [SyscallsCommand]
        end
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("A command is traced: `pitwall syscalls --help --` has the options for that.")
        parser.separator("A log: call<TAB>path lines, strace -f (-e trace=%file,%desc; -y, -T, -tt),")
        parser.separator("dtruss, bpftrace scripts; plain or gzip; - is standard input. Two: what changed.")
        parser.separator("")
        SyscallSources.define_options(parser, @options)
        parser.on("--diff", "two logs: what changed from the first to the second (as without it)") do
          @options[:diff] = true
        end
        parser.on("--collapsed", "the log itself, each pattern's calls replaced by its marker") do
          @options[:collapsed] = true
        end
        parser.on("--list-patterns", "the pattern table, with yours of .pitwall.yml") { @options[:list] = true }
        parser.on("--salvage", "read what is left of a damaged recording") { @options[:salvage] = true }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.on("--out FILE", "instead of standard output") { |file| @options[:out] = file }
        parser.separator("")
        parser.on("--fail-if EXPR", "end with status 1 when it holds: calls > 120000, scan > 100; of two logs also " \
                                    "calls > 2%") do |text|
          @options[:fail_if] = text
        end
      end

      # A command is traced, not read.
      #: (Array[String]) -> (Integer | Ending)
      def call(argv)
        return super unless argv.include?("--")

        self.class.other_forms.first.new(out: @out, err: @err).call(argv)
      end

      #: (Array[String]) -> Integer
      def run(files)
        return list if @options[:list]

        check(files)
        return collapse(files.first) if @options[:collapsed]

        gate = gate(files)
        reports = files.map { |file| read(file) }
        write(reports)
        judge(gate, reports.map(&:report))
      end

      private

      def list
        patterns = SyscallSources.patterns(@options[:patterns])
        @out.puts(Show::SyscallsText.table(patterns, width: width, palette: palette))
        Status::OK
      end

      def check(files)
        if files.empty?
          raise UsageError, "nothing to look at: pitwall syscalls -- CMD… traces a command, pitwall syscalls LOG " \
                            "reads a log (- is standard input)"
        end
        raise UsageError, "#{files.size} logs: name one, or two to compare" if files.size > 2
        if @options[:diff] && files.size < 2
          raise UsageError, "--diff takes two logs: pitwall syscalls --diff BEFORE AFTER"
        end
        raise UsageError, "- - : standard input is one log; name a file for the other" if files == %w[- -]

        check_options(files)
        OutputFile.check(@options[:out], files - ["-"]) if @options[:out] && @options[:out] != "-"
      end

      def check_options(files)
        check_limit
        check_page if @options[:format] == "html"
        return unless @options[:collapsed]

        other = %i[format fail_if].find { |name| @options[name] }
        raise UsageError, "--collapsed prints the log itself: leave out --#{other.to_s.tr("_", "-")}" if other
        raise UsageError, "--collapsed takes one log" if files.size > 1
      end

      def check_page
        raise UsageError, "--format html: the page has all rows: leave out --limit" if @options[:limit]
        if terminal?(@out) && @options[:out].nil?
          raise UsageError, "--format html: a terminal shows no page: add --out FILE.html"
        end
      end

      # The report of a log or a recording, and what is to be said of it.
      def read(file, &collapsed)
        return recorded(file, &collapsed) if recording?(file)

        SyscallSources.of_log(file, @options[:patterns], &collapsed)
      end

      def recorded(file, &collapsed)
        @recording = recording = Record.read(file, salvage: @options.fetch(:salvage, false))
        Views::SyscallReport.of_segments(recording.segments, patterns: table, file: file,
                                                             warnings: recording.warnings, &collapsed)
      end

      def table = -> { SyscallSources.patterns(@options[:patterns]) }

      # What can't be read is no recording; whoever opens it as a log says why.
      def recording?(file)
        file != "-" && File.file?(file) && File.readable?(file) &&
          File.binread(file, RECORDING.bytesize) == RECORDING
      end

      def collapse(file)
        report = nil
        to_out do |out|
          lines = []
          report = read(file) do |line|
            lines << line
            out.write(lines.join("\n") << "\n") && lines.clear if lines.size >= 1000
          end
          out.write(lines.join("\n") << "\n") unless lines.empty?
        end
        report.warnings.each { |warning| @err.puts("pitwall: #{warning.message}") }
        Status::OK
      end

      def write(reports)
        text = @recording && reports.size == 1 && @options[:format] == "html" ? page(reports.first) : drawn(reports)
        to_out { |out| out.puts(text) }
      end

      def page(report)
        Page.of_syscalls(@recording.segments, @recording.warnings, patterns: table, syscalls: report)
      end

      def drawn(reports)
        to_file = @options[:out] && @options[:out] != "-"
        look = to_file ? [PIPE_WIDTH, Show::Plain] : [width, palette]
        Views::SyscallReport.draw(reports, @options[:format], limit: @options[:limit], base: Dir.pwd,
                                                              width: look[0], palette: look[1])
      end

      def to_out(&block)
        @options[:out] && @options[:out] != "-" ? OutputFile.write(@options[:out], &block) : yield(@out)
      end

      def gate(files)
        text = @options[:fail_if] or return nil
        named = table.call.names.map { |name| name.delete_prefix("%").downcase }.grep(/\A[a-z_]+\z/)
        gate = Gate.parse(text, metrics: named.to_h { |name| [name, "count"] }.merge(METRICS), alone: files.size == 1)
        word = gate.conditions.find { |one| one.operator.nil? && !%w[more worse].include?(one.metric) }
        if word
          raise UsageError, "--fail-if #{text}: logs tell how many calls there were, not #{word.metric}; write calls " \
                            "> 0%"
        end

        gate
      end

      def judge(gate, reports)
        return Status::OK unless gate

        failed = gate.failed { |condition| exceeded?(condition, reports) }
        failed.each { |one| @err.puts("pitwall: --fail-if #{@options[:fail_if]}: #{verdict(one, reports)}") }
        failed.empty? ? Status::OK : Status::WORSE
      end

      def verdict(condition, reports)
        return change(condition, reports) if condition.operator.nil? || condition.relative

        condition.verdict(value(reports.last, condition.metric))
      end

      def exceeded?(condition, reports)
        metric = condition.operator ? condition.metric : "calls"
        before, after = [reports.first, reports.last].map { |report| value(report, metric) }
        return after > before unless condition.operator
        if condition.metric == "time" && !reports.all?(&:timed?)
          raise CannotMeasure, "--fail-if #{@options[:fail_if]}: the log has no times (strace -T)"
        end
        return after.public_send(condition.operator, condition.limit) unless condition.relative
        return after.positive? && condition.operator.start_with?(">") if before.zero?

        after.fdiv(before).public_send(condition.operator, condition.limit)
      end

      def value(report, metric)
        case metric
        when "calls", "unexplained", "explained", "failed" then report.public_send(metric)
        when "saved" then report.findings.sum(&:saved_calls)
        when "time" then report.ns
        else report.passes.find { |pass| pass.name.delete_prefix("%").downcase == metric }&.markers.to_i
        end
      end

      def change(condition, reports)
        metric = condition.operator ? condition.metric : "calls"
        before, after = [reports.first, reports.last].map { |report| Show::Units.count(value(report, metric)) }
        "#{metric} went from #{before} to #{after}"
      end
    end
  end
end
