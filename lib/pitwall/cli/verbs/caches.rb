# frozen_string_literal: true

require "pitwall/cli/recording/allow_list"
require "pitwall/cli/recording/recorded_command"
require "pitwall/cli/recording/view_report"

module Pitwall
  module CLI
    # `pitwall caches -- CMD`: which lines of a command empty caches of the VM.
    class Caches < RecordedCommand
      include ViewReport

      VIEW = Views.named("caches")
      # Of --fail-if, with their units.
      METRICS = ["invalidations", *Analyse::Caches::OWN.keys, *Record::VM_COUNTERS.keys]
                .to_h { |name| [name, "count"] }.freeze
      # "invalidation" alone is the condition "invalidations > 0".
      ANY = /\binvalidations?\b(?!\s*[<>])/.freeze
      private_constant :VIEW, :METRICS, :ANY

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
        parser.on("--count", "count only what Ruby counts, without lines: costs least") { @options[:count] = true }
        parser.on("--samples", "take samples, too: rows by the time spent at their lines") do
          @options[:samples] = true
        end
        parser.on("--definitions", "measure at the end what it costs to define methods on the modules and classes " \
                                   "that got methods") { @options[:definitions] = true }
        define_times(parser)
        define_collecting_options(parser)
        parser.separator("What to show")
        VIEW.define_options(parser, @options)
        define_report_options(parser, rows: "rows in the table")
        define_gate(parser)
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command)
        raise UsageError, "--write-allow-list: name the file with --allow-list FILE" if @write && @allow.nil?

        refuse_lines_with_count

        @allowed = AllowList.read(@allow) if @allow && !@write
        limited(super)
      end

      private

      # What needs lines says nothing about a count.
      def refuse_lines_with_count
        return unless @options[:count]

        needs = { "--lines": @options[:lines], "--no-lines": @options[:lines] == false,
                  "--definitions": @options[:definitions], "--allow-list": @allow, "--after": @options[:after] }
        option = needs.keys.find { |name| needs[name] }
        raise UsageError, "--count: #{option} needs the lines of changes: leave one of the two out" if option
      end

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
        # What is left out needs no line. But a gate must not miss what happens once after that.
        works = @options[:after]&.works unless @options[:fail_if] || @allow
        waits = works ? { "caches.lines_after": works } : {}
        blame = @options[:count] ? { "caches.blame": 0 } : {}
        { mode: @options[:samples] ? "auto" : "none", "caches.lines": lines, **waits, **blame,
          "caches.definitions": @options[:definitions] ? 1 : 0, **super }
      end

      def view_of(_segments) = VIEW

      def asked(_view) = { **super, command: @command }

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
        if caches.only_counted? && !Record::VM_COUNTERS.key?(metric)
          @unknown = "--count does not count #{metric}: leave it out"
          return false
        end
        return counted(caches).sum { |row, _| row.count } if metric == "invalidations"
        unless caches.counters.key?(metric)
          part = !caches.after.all? && !caches.with_line?(metric)
          @unknown = part ? "#{metric} is known of the whole run only" : "this Ruby does not count #{metric}"
          return false
        end
        return caches.counters.fetch(metric) - caches.own.fetch(metric, 0) unless @allowed

        counted(caches).sum { |_, counts| counts.fetch(metric, 0) }
      end

      def counted(caches) = caches.changes.reject { |row, _| @allowed&.include?(row) }
    end
  end
end
