# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/measuring/measuring"
require "pitwall/cli/measuring/recorded_sides"
require "pitwall/cli/measuring/sides"
require "pitwall/workspace"

module Pitwall
  module CLI
    # `pitwall compare SIDE… BENCH.rb`, `compare SIDE… -- CMD`, `compare -e A -e B`, `compare A.pit B.pit`.
    class Compare < Measuring
      include RecordedSides

      BUDGET = 30.0
      private_constant :BUDGET

      class << self
        #: () -> String
        def summary = "is B faster than A: revisions, Rubies, gems, patches, recordings"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall compare --dirty -- ruby report.rb", "are my changes faster?"],
            ["pitwall compare -e '[*1..1000].sum' -e '[*1..1000].inject(:+)'", "is B faster than A?"]
          ]
        end

        #: () -> String
        def usage = "SIDE… (BENCH.rb | -- CMD…) | -e A -e B | A.pit B.pit"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        sides.define_options(parser)
        parser.separator("How to measure")
        define_running_options(parser)
        parser.on("--level PERCENT", "of the printed intervals; what is missing to 100% is the chance of a false alarm (99%)") { |text| @options[:alpha] = (1 - percent("--level", text)).round(9) }
        parser.on("--margin PERCENT", "what is nearer than that is the same (1%)") { |text| @options[:margin] = percent("--margin", text) }
        parser.on("--pairs N", Integer, "so many pairs at most (default: what the budget holds)") { |count| @options[:max_blocks] = positive("--pairs", count) }
        parser.on("--control", "measure the base against itself as well (A/A)") { @options[:control] = true }
        parser.on("--no-turns", "run each process to its end before the next (default: batch by batch, in turns)") { @options[:in_turns] = false }
        parser.on("--check", "all sides must return the same") { @options[:check] = true }
        parser.on("--instructions", "count instructions too: three runs of each side under valgrind, a minute or two") { @options[:instructions] = true }
        parser.on("--syscalls", "count file-system calls too: three runs of each side under pitwall syscalls --count") { @options[:syscalls] = true }
        parser.on("--retained", "count what still lives at the end too: three runs of each side under pitwall allocations") { @options[:retained] = true }
        parser.on("--why", "profile all sides as well: which methods' share changed beyond noise") { @options[:why] = true }
        define_recorded_options(parser)
        define_output_options(parser)
        parser.on("--details", "of text: all of it: counters without change, distributions, every warning, how it was made") { @options[:details] = true }
      end

      #: (Array[String]) -> Integer
      def run(files)
        check_recordings(files)
        check_recorded_options(recordings?(files))
        return compare_recordings(files) if recordings?(files)

        predict_first

        script = the_script(files)
        wanted = sides.to_a(script: script, command: @command)
        raise UsageError, "--check: compares what benchmark cases return; a command returns nothing" if @options[:check] && @command

        check_output(files)
        Workspace.open(script: script, command: @command, on_step: progress.method(:step), **sides.settings) do |workspace|
          subjects = workspace.subjects(wanted)
          progress.end
          workspace.notes.each { |note| @err.puts("pitwall: #{note}") }
          measure(subjects)
        rescue Pitwall::Bench::Failed => error
          raise error.class, workspace.explained(error.message)
        end
      ensure
        progress.end
      end

      private

      def sides = @sides ||= Sides.new

      def default_budget = BUDGET

      def brief? = !@options[:details] && @options.fetch(:format, "text") == "text"

      def gate_example = "slower; \"wall > 2%, objects > 0%\""

      def gate(text) = Gate.parse(text, metrics: [*Record::METRICS.keys, "wall_mean"])

      def the_script(files)
        raise UsageError, "#{files[1]}: one benchmark file at a time; --only chooses among its cases" if files.size > 1

        script(files.first) if files.any?
      end

      def measure(subjects)
        settings = settings(**@options.slice(:alpha, :margin, :max_blocks, :control, :check, :in_turns))
        head = { "kind" => "compare", "settings" => settings.to_facts, "command" => again, "host" => Pitwall::Bench::Host.facts,
                 "sides" => subjects.map { |subject| { "name" => subject.name, "facts" => subject.facts } } }
        report = record(head) do |writer|
          experiment = Experiment::Compare.new(subjects, settings, progress: progress, record: writer)
          measured(experiment, writer).tap { |found| look_closer(experiment, found) unless experiment.interrupted || experiment.failure }
        ensure
          experiment&.close
        end
        progress.end
        publish(MeasuredView.render(report, @options[:format], details: @options.fetch(:details, false), **rendering))
        raise @trouble if @trouble

        status(report)
      end

      # Everything that can be known to fail is, before anything runs.
      def predict_first
        place = @options[:predicted] or return
        @before = predicted_from
        Analyse::PredictionCheck.predicted(place, @before, @options.fetch(:weight, :wall))
      end

      # What is asked for beside the clock's verdict, which is shown whatever becomes of it.
      def look_closer(experiment, report)
        experiment.count_instructions(report) if @options[:instructions]
        experiment.count_system_calls(report) if @options[:syscalls]
        experiment.count_retained(report) if @options[:retained]
        experiment.explain(report) if @options[:why]
        report.predictions = measured_checks(report, @before) if @before
      rescue Interrupt
        report.settings = report.settings.merge("interrupted" => true)
      rescue CannotMeasure, Pitwall::Bench::Failed => error
        @trouble = error
      end

      # One alarm is an alarm; without one, what is undecided is undecided.
      def status(report)
        return gated(report) if @options[:fail_if]
        return Status::WORSE if report.headline.any? { |effect| effect.verdict == :slower }

        report.headline.any? { |effect| effect.verdict == :undecided } ? Status::UNDECIDED : Status::OK
      end

      def gated(report)
        judge_gate(report.effects.map(&:metric).uniq) do |condition|
          report.effects.any? { |effect| condition.holds_for?(effect) { estimate(report, effect) } }
        end
      end

      # Of the side alone.
      def estimate(report, effect)
        return Analyse::Estimate.new(effect.b, effect.b, effect.b, 1.0, effect.pairs) if effect.exact

        medians = report.medians(effect.name, effect.metric.delete_suffix("_mean"))[effect.side]
        Analyse::Statistics.median_interval(medians, level: 0.99) if medians&.any?
      end
    end
  end
end
