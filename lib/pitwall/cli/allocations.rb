# frozen_string_literal: true

require "pitwall/cli/allocations_view"
require "pitwall/cli/gate"
require "pitwall/cli/recorded_command"

module Pitwall
  module CLI
    # `pitwall allocations -- CMD`: every object of a command, by the place that allocated it.
    class Allocations < RecordedCommand
      FORMATS = %w[text json markdown].freeze
      # Of --fail-if, with their units.
      METRICS = { "objects" => "count", "bytes" => "bytes", "retained" => "count", "old" => "count", "gc_time" => "ns" }.freeze
      # Which counter of Analyse::Allocations a metric of --fail-if is.
      COUNTERS = { "objects" => :count, "bytes" => :bytes, "retained" => :retained, "old" => :old, "gc_time" => :gc_ns }.freeze
      private_constant :FORMATS, :METRICS, :COUNTERS

      class << self
        #: () -> String
        def summary = "a command's objects by line and class: age, bytes, GC"
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
        parser.on("--fail-if EXPR", "end with status 1 when it holds and the command gave 0: objects > 120k, bytes > 2MB, retained > 2000") { |text| @options[:fail_if] = gate(text) }
      end

      #: (Array[String]) -> (Integer | Ending)
      def run(command)
        ending = super
        return ending unless @options[:fail_if] && ending.status.zero?
        return Status::WORSE if @exceeded

        # A limit that nobody could hold against anything must not look as if it had been kept.
        unjudged = @judged ? @unknown : "nothing was recorded"
        return ending unless unjudged

        @err.puts("pitwall: --fail-if #{@limits}: cannot be judged: #{unjudged}")
        Status::CANNOT_MEASURE
      end

      private

      def target_options
        { mode: "none", "allocations.one_in": @options.fetch(:one_in, 1), "allocations.stacks": @options[:stacks] ? 1 : 0,
          "allocations.strings": @options[:strings] ? 1 : 0, **super }
      end

      def render(recording, _difference, width:, palette:)
        found = Record.read(recording)
        judge(found.segments)
        AllocationsView.render(found.segments, found.warnings, @options, files: [recording], width: width, palette: palette)
      end

      # A gate is judged even where no report is wanted.
      def show(recording, summary, difference)
        judge(Record.read(recording).segments) if @options[:quiet] && !@options[:out]
        super
      end

      # Without stacks there is little for other programs to show, and there are no samples for a time line.
      def closing(summary, difference) = summary.closing(difference, elsewhere: !!@options[:stacks])

      def export_hint = ["collapsed --weight objects", "objects.folded"]

      def judge(segments)
        gate = @options[:fail_if] or return
        allocations = Analyse::Allocations.new(segments)
        return unless allocations.any?

        @judged = true
        values = gate.conditions.to_h { |condition| [condition.metric, allocations.total(COUNTERS.fetch(condition.metric))] }
        failed = gate.failed { |condition| known?(allocations, condition) && condition.exceeded?(exactly(values[condition.metric])) } or return

        @exceeded = true
        @err.puts("pitwall: --fail-if #{@limits}: #{failed.verdict(values[failed.metric])}")
      end

      def exactly(value) = Analyse::Estimate.new(value, value, value)

      def known?(allocations, condition)
        return true if condition.metric != "retained" || allocations.retained?

        @unknown = "what was retained is not known: the process was killed"
        false
      end

      def gate(text)
        @limits = text
        Gate.parse(text, metrics: METRICS, alone: true)
      end
    end
  end
end
