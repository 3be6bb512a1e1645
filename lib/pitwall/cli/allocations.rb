# frozen_string_literal: true

require "pitwall/cli/allocations_view"
require "pitwall/cli/command_limit"
require "pitwall/cli/recorded_command"

module Pitwall
  module CLI
    # `pitwall allocations -- CMD`: every object of a command, by the place that allocated it.
    class Allocations < RecordedCommand
      include CommandLimit

      FORMATS = %w[text json markdown html].freeze
      # Of --fail-if, with their units.
      METRICS = { "objects" => "count", "bytes" => "bytes", "retained" => "count", "old" => "count", "gc_time" => "ns" }.freeze
      # Which counter of Analyse::Allocations a metric of --fail-if is.
      COUNTERS = { "objects" => :count, "bytes" => :bytes, "retained" => :retained, "old" => :old, "gc_time" => :gc_ns }.freeze
      private_constant :FORMATS, :METRICS, :COUNTERS

      class << self
        #: () -> String
        def summary = "a command's objects by line and class: age, bytes, GC"

        #: () -> Hash[String, Array[String]]
        def option_words = AllocationsView.option_words
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("How to record")
        parser.on("--stacks", "the whole stack of each place, for --by stack and report --tree --weight objects") { @options[:stacks] = true }
        parser.on("--sample 1/N", "follow one object in so many (all)") { |text| @options[:one_in] = AllocationsView.one_in(text, "--sample") }
        parser.on("--strings", "also strings of equal content, told by a digest; contents are not kept") { @options[:strings] = true }
        define_collecting_options(parser)
        parser.separator("What to show")
        AllocationsView.define_options(parser, @options)
        parser.on("--limit N", Integer, "rows in the table") { |limit| @options[:limit] = limit }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.separator("")
        define_limit(parser, METRICS, "objects > 120k, bytes > 2MB, retained > 2000")
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command) = limited(super)

      private

      def target_options
        { mode: "none", "allocations.one_in": @options.fetch(:one_in, 1), "allocations.stacks": @options[:stacks] ? 1 : 0,
          "allocations.strings": @options[:strings] ? 1 : 0, **super }
      end

      def render(recording, _difference, width:, palette:)
        found = Record.read(recording)
        judge_segments(found.segments)
        AllocationsView.render(found.segments, found.warnings, @options, files: [recording], width: width, palette: palette)
      end

      # A gate is judged even where no report is wanted.
      def show(recording, summary, difference)
        judge_segments(Record.read(recording).segments) if @options[:quiet] && !@options[:out]
        super
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
