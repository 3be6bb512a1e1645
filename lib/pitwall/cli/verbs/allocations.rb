# frozen_string_literal: true

require "pitwall/cli/recording/one_in"
require "pitwall/cli/recording/recorded_command"
require "pitwall/cli/recording/recording_options"
require "pitwall/cli/recording/view_report"

module Pitwall
  module CLI
    # `pitwall allocations -- CMD`: every object of a command, by the place that allocated it.
    class Allocations < RecordedCommand
      include ViewReport

      # Of --fail-if, with their units.
      METRICS = { "objects" => "count", "bytes" => "bytes", "retained" => "count", "old" => "count",
                  "gc_time" => "ns" }.freeze
      # Which counter of Analyse::Allocations a metric of --fail-if is.
      COUNTERS = { "objects" => :count, "bytes" => :bytes, "retained" => :retained, "old" => :old,
                   "gc_time" => :gc_ns }.freeze
      # Views of what it records: the table, and what grows.
      VIEWS = [Views.named("allocations"), Views.named("growth")].freeze
      # Keys of the table where stacks are recorded.
      BY_STACK = %i[path line class stack].freeze
      private_constant :METRICS, :COUNTERS, :VIEWS, :BY_STACK

      class << self
        #: () -> String
        def summary = "a command's objects by line and class: age, bytes, GC"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall allocations -- bin/rails runner Report.new.build", "every object, by line and class"],
            ['pitwall allocations --stacks --fail-if "objects > 120000" -- ruby report.rb',
             "with callers; status 1 above"]
          ]
        end

        #: () -> Hash[String, Array[String]]
        def option_words = VIEWS.map(&:option_words).reduce(:merge)
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("How to record")
        parser.on("--stacks", "the whole stack of each place, for --by stack and report --tree --weight objects") do
          @options[:stacks] = true
        end
        parser.on("--sample 1/N", "follow one object in so many (all)") do |text|
          @options[:one_in] = OneIn.parse(text, name: "--sample")
        end
        parser.on("--strings", "also strings of equal content, told by a digest; contents are not kept") do
          @options[:strings] = true
        end
        parser.on("--growth", "what stays and keeps growing, by line and class: leaks (doc/allocations.md)") do
          @options[:growth] = true
        end
        parser.on("--holders", "with --growth: who holds what grows, looked for in the program, at its end") do
          @options[:holders] = true
        end
        define_times(parser)
        define_collecting_options(parser)
        parser.separator("What to show")
        VIEWS.each { |view| view.define_options(parser, @options) }
        RecordingOptions.define_filters(parser, @options, time: false)
        parser.on("--only-mine", "only the application's lines, with what they call (with --stacks)") do
          @options[:only_mine] = true
        end
        define_report_options(parser, rows: "rows in the table")
        define_limit(parser, METRICS, "objects > 120k, bytes > 2MB, retained > 2000")
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command)
        check_growth
        limited(super)
      end

      private

      def check_growth
        return refuse_without_growth unless @options[:growth]

        odd = %i[by sort retained strings].find { |name| @options[name] }
        if odd
          raise UsageError, "--#{odd}: is of the table of allocations: leave it out, and ask for it afterwards with " \
                            "pitwall report FILE.pit --view allocations"
        end
      end

      def refuse_without_growth
        odd = %i[warmup holders].find { |name| @options[name] }
        raise UsageError, "--#{odd}: is of --growth: add it, or leave this out" if odd
      end

      def target_options
        flags = %i[stacks strings growth holders].to_h { |name| [:"allocations.#{name}", @options[name] ? 1 : 0] }
        { mode: "none", "allocations.one_in": @options.fetch(:one_in, 1), **flags, **super }
      end

      # The page has both.
      def view_of(segments)
        growth = @options[:growth] && @options[:format] != "html" && segments.any?(&:growth?)
        VIEWS.fetch(growth ? 1 : 0)
      end

      def asked(view)
        options = { **super, **@options.slice(:only_mine, *Views::Filters::KEYS) }
        options[:by] ||= BY_STACK if @options[:stacks] && view.own_options.include?(:by)
        options
      end

      # Without stacks there is little for other programs to show, and there are no samples for a time line.
      def closing(summary, difference) = summary.closing(difference, elsewhere: !!@options[:stacks])

      def export_hint = ["collapsed --weight objects", "objects.folded"]

      def judge_segments(segments)
        allocations = Analyse::Allocations.new(segments)
        judge { |metric| known?(allocations, metric) && allocations.total(COUNTERS.fetch(metric)) } if allocations.any?
      end

      def known?(allocations, metric)
        return true if metric != "retained" || allocations.retained?

        @unknown = "what was retained is not known: the process was killed"
        false
      end
    end
  end
end
