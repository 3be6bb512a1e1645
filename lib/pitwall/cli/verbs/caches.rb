# frozen_string_literal: true

require "pitwall/cli/recording/allow_list"
require "pitwall/cli/recording/command_limit"
require "pitwall/cli/recording/page"
require "pitwall/cli/recording/project"
require "pitwall/cli/recording/recorded_command"
require "pitwall/views"

module Pitwall
  module CLI
    # `pitwall caches -- CMD`: which lines of a command empty caches of the VM.
    class Caches < RecordedCommand
      include CommandLimit

      FORMATS = %w[text json markdown html].freeze
      VIEW = Views.named("caches")
      # Of --fail-if, with their units.
      METRICS = ["invalidations", *Analyse::Caches::OWN.keys, *Record::VM_COUNTERS.keys]
                .to_h { |name| [name, "count"] }.freeze
      # "invalidation" alone is the condition "invalidations > 0".
      ANY = /\binvalidations?\b(?!\s*[<>])/.freeze
      private_constant :FORMATS, :VIEW, :METRICS, :ANY

      class << self
        #: () -> String
        def summary = "which lines empty the VM's caches: constants, methods, classes"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall caches -- bin/rails runner 1", "what changes while the program boots"],
            ["pitwall caches --after boot --fail-if invalidation -- bin/rails test",
             "status 1 if a warm program changes"]
          ]
        end
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("How to record")
        parser.on("--lines", "compare counters at each line, always (usually only until a million lines have changed " \
                             "nothing)") { @options[:lines] = true }
        parser.on("--no-lines", "watch methods only: faster; shapes, class variables and (Ruby 3.1) assigned " \
                                "constants have no line") { @options[:lines] = false }
        parser.on("--samples", "take samples, too: rows by the time spent at their lines") do
          @options[:samples] = true
        end
        parser.on("--definitions", "measure at the end what it costs to define methods on the modules and classes " \
                                   "that got methods") { @options[:definitions] = true }
        define_times(parser)
        define_collecting_options(parser)
        parser.separator("What to show")
        VIEW.define_options(parser, @options)
        parser.on("--limit N", Integer, "rows in the table") { |limit| @options[:limit] = limit }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.separator("")
        define_gate(parser)
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command)
        raise UsageError, "--write-allow-list: name the file with --allow-list FILE" if @write && @allow.nil?

        @allowed = AllowList.read(@allow) if @allow && !@write
        limited(super)
      end

      private

      def define_gate(parser)
        parser.on("--fail-if EXPR", "end with status 1 when it holds and the command gave 0: invalidation, " \
                                    "methods_changed > 10") do |text|
          @limits = text
          @options[:fail_if] = Gate.parse(text.gsub(ANY, "invalidations > 0"), metrics: METRICS, alone: true)
        end
        parser.on("--allow-list FILE", "changes that --fail-if does not count, one a line") { |file| @allow = file }
        parser.on("--write-allow-list", "write the changes of this run to the allow-list") { @write = true }
      end

      def target_options
        lines = { true => "1", false => "0" }.fetch(@options[:lines], "quiet")
        { mode: @options[:samples] ? "auto" : "none", "caches.lines": lines,
          "caches.definitions": @options[:definitions] ? 1 : 0, **super }
      end

      def render(recording, _difference, width:, palette:)
        found = Record.read(recording)
        judge_segments(found.segments)
        subject = Views::Subject.new(
          Views::Asked.new({ **@options.slice(:format, :limit, :after), command: @command }),
          found.segments, found.warnings, files: [recording], typed: Project.typed([recording]),
          application: Project.application([recording], command: @command),
          screen: Views::Screen.new(width: width, palette: palette)
        )
        @options[:format] == "html" ? page(subject) : VIEW.draw(subject)
      end

      def page(subject)
        VIEW.check(subject)
        Page.render(subject.chosen, subject.warnings, patterns: subject.application.patterns,
                    findings: subject.findings_of_process, origin: subject.application.origin)
      end

      # A gate is judged even where no report is wanted.
      def show(recording, summary, difference)
        judge_segments(Record.read(recording).segments) if @options[:quiet] && !@options[:out]
        super
      end

      # There are no samples for other programs to show.
      def closing(summary, difference) = summary.closing(difference, elsewhere: false)

      def judge_segments(segments)
        return if @seen

        @seen = true
        caches = Analyse::Caches.new(segments, after: @options[:after] || Analyse::Caches::After.new)
        return unless caches.any? && caches.warm?

        if @write
          AllowList.write(@allow, caches.changes.map(&:first))
        elsif @allowed
          @allowed.stale(caches.changes.map(&:first)).each do |line|
            text = Show::Text.line(line.tr("\t", " "))
            @err.puts("pitwall: #{@allow}: nothing matches \"#{text}\" any more: remove the line")
          end
        end
        judge { |metric| value(caches, metric) }
      end

      def value(caches, metric)
        return counted(caches).sum { |row, _| row.count } if metric == "invalidations"
        unless caches.counters.key?(metric)
          part = !caches.after.all? && !caches.with_line?(metric)
          @unknown = part ? "#{metric} is known of the whole run only" : "this Ruby does not count #{metric}"
          return false
        end
        return caches.counters.fetch(metric) unless @allowed

        counted(caches).sum { |_, counts| counts.fetch(metric, 0) }
      end

      def counted(caches) = caches.changes.reject { |row, _| @allowed&.include?(row) }
    end
  end
end
