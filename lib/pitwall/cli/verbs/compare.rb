# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/measuring/confirmed_gate"
require "pitwall/cli/measuring/measured_commits"
require "pitwall/cli/measuring/measuring"
require "pitwall/cli/measuring/recorded_sides"
require "pitwall/cli/measuring/sides"
require "pitwall/workspace"

module Pitwall
  module CLI
    # `pitwall compare SIDE… BENCH.rb`, `compare SIDE… -- CMD`, `compare -e A -e B`, `compare A.pit B.pit`.
    class Compare < Measuring
      include RecordedSides
      include MeasuredCommits
      include ConfirmedGate

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
        define_commit_options(parser)
        parser.separator("How to measure")
        define_running_options(parser)
        level = "confidence level of the intervals; the rest to 100% is the chance of a false alarm (99%)"
        parser.on("--level PERCENT", level) do |text|
          @options[:alpha] = (1 - percent("--level", text)).round(9)
        end
        parser.on("--margin PERCENT", "smaller differences count as \"same\" (1%)") do |text|
          @options[:margin] = percent("--margin", text)
        end
        parser.on("--pairs N", Integer, "at most N pairs (default: as many as the budget allows)") do |count|
          @options[:max_blocks] = positive("--pairs", count)
        end
        parser.on("--control", "measure the base against itself as well (A/A)") { @options[:control] = true }
        parser.on("--no-turns", "run each process to its end before the next (default: batch by batch, in turns)") do
          @options[:in_turns] = false
        end
        parser.on("--check", "all sides must return the same result") { @options[:check] = true }
        parser.on("--instructions", "count instructions too: " \
                                    "three runs of each side under valgrind, a minute or two") do
          @options[:instructions] = true
        end
        parser.on("--syscalls", "count file-system calls too: " \
                                "three runs of each side under pitwall syscalls --count") do
          @options[:syscalls] = true
        end
        parser.on("--retained", "count objects that still live at the end too: " \
                                "three runs of each side under pitwall allocations") do
          @options[:retained] = true
        end
        parser.on("--why", "profile all sides as well: which methods' share changed beyond noise") do
          @options[:why] = true
        end
        define_recorded_options(parser)
        define_output_options(parser)
        parser.on("--details", "of text: all of it: counters without change, distributions, every warning, " \
                               "how it was made") do
          @options[:details] = true
        end
      end

      #: (Array[String]) -> Integer
      def run(files)
        check_recordings(files)
        check_recorded_options(recordings?(files))
        return compare_recordings(files) if recordings?(files)
        return compare_commits(files) if range?

        check_prediction
        script = script_path(files)
        typed_sides = sides.to_a(script: script, command: @command)
        if @options[:check] && @command
          raise UsageError, "--check: compares what benchmark cases return; a command returns nothing"
        end

        check_output(files)
        Workspace.open(script: script, command: @command, on_step: progress.method(:step),
                       **workspace_settings) do |workspace|
          skipped = skip_unreachable(workspace, typed_sides)
          next skipped if skipped

          subjects = workspace.subjects(typed_sides)
          progress.end
          workspace.notes.each { |note| @err.puts("pitwall: #{note}") }
          measure(subjects, repeat: repeat(workspace, typed_sides, subjects))
        rescue Pitwall::Bench::Failed => error
          raise error.class, workspace.explain(CLI.message(error))
        end
      ensure
        progress.end
      end

      private

      def sides = @sides ||= Sides.new

      def workspace_settings = sides.settings

      def default_budget = BUDGET

      def only_words = "#{super}; of two recordings: only frames of app, gems, stdlib, native or a gem"

      def brief? = !@options[:details] && @options.fetch(:format, "text") == "text"

      def gate_example = "\"slower by 3%\"; \"wall > 2%, objects > 0%\""

      def gate(text) = Gate.parse(text, metrics: [*Record::METRICS.keys, "wall_mean"])

      def script_path(files)
        raise UsageError, "#{files[1]}: one benchmark file at a time; --only chooses among its cases" if files.size > 1

        script(files.first) if files.any?
      end

      # What a proof needs so that others can repeat the comparison; nil unless two trees alone are compared.
      def repeat(workspace, typed_sides, subjects)
        return unless RepeatedCommand.possible?(typed_sides)

        facts = workspace.provenance or return
        trees = subjects.map { |subject| subject.facts["tree"] }
        takes_value = ->(name) { parser.top.long[name.delete_prefix("--")]&.arg || name == "-e" }
        words = RepeatedCommand.words(@argv, trees: trees, sides: typed_sides, takes_value: takes_value)
        { **facts, "trees" => trees, "command" => RepeatedCommand.line(words, folder: facts["folder"]) }
      end

      def measure(subjects, repeat: nil)
        settings = settings(**@options.slice(:alpha, :margin, :max_blocks, :control, :check, :in_turns))
        sides = subjects.map { |subject| { "name" => subject.name, "facts" => subject.facts } }
        head = head(settings, sides, { "repeat" => repeat })
        report = record(head) do |writer|
          experiment = Experiment::Compare.new(subjects, settings, progress: progress, record: writer)
          run_experiment(experiment, writer).tap do |found|
            next if experiment.interrupted || experiment.failure

            measure_extras(experiment, found)
            judge(found, subjects, settings, head) if @options[:fail_if] && @failure.nil?
          end
        ensure
          experiment&.close
        end
        progress.end
        conclude(report)
      end

      # The head of a file of measured values. MeasuredCommits writes it, too.
      def head(settings, sides, more = {})
        { "kind" => "compare", "settings" => settings.to_facts, "command" => command_line,
          "host" => Pitwall::Bench::Host.facts, "pitwall" => VERSION, **more, "sides" => sides }
      end

      # Judges the gate. What fails is measured again, in a file of its own.
      def judge(report, subjects, settings, head)
        judge_twice(report) do |names|
          words = "#{names.join(", ")}: measuring a second time to confirm it"
          @err.puts("pitwall: --fail-if: #{words}") unless @options[:quiet]
          only = Regexp.new("\\A(?:#{Regexp.union(names).source})\\z")
          again = settings.dup.tap { |copy| copy.only, copy.control, copy.seed = only, false, settings.seed + 1 }
          path = record_path.sub(/(?:\.jsonl)?\z/, "-again.jsonl")
          second_head = head.merge("settings" => again.to_facts, "confirms" => File.basename(record_path))
          writer = Record::Measurements::Writer.new(path, second_head)
          experiment = Experiment::Compare.new(subjects, again, progress: progress, record: writer)
          second = run_experiment(experiment, writer)
          second unless experiment.interrupted
        ensure
          experiment&.close
        end
      end

      # Shows the report.
      # @return [Integer] the exit status
      def conclude(report)
        publish(MeasuredView.render(report, @options[:format], details: @options.fetch(:details, false), **rendering))
        raise @failure if @failure

        status(report)
      end

      # Computes the prediction of --predicted once before anything runs, so that its errors come first.
      # @raise [UsageError] the place isn't in the recordings
      def check_prediction
        place = @options[:predicted] or return
        @before = predicted_from
        Analyse::PredictionCheck.predicted(place, @before, @options.fetch(:weight, :wall))
      end

      # Counts and profiles for --instructions, --syscalls, --retained, --why and --predicted. An error is stored in
      # @failure, so that the report of the measured times is still shown.
      def measure_extras(experiment, report)
        experiment.count_instructions(report) if @options[:instructions]
        experiment.count_system_calls(report) if @options[:syscalls]
        experiment.count_retained(report) if @options[:retained]
        experiment.explain(report) if @options[:why]
        report.predictions = measured_checks(report, @before) if @before
      rescue Interrupt
        report.settings = report.settings.merge("interrupted" => true)
      rescue CannotMeasure, Pitwall::Bench::Failed => error
        @failure = error
      end

      # The exit status: 1 when any case is slower, else 3 when any case is undecided, else 0.
      def status(report)
        return report.search["verdict"] == "undecided" ? Status::UNDECIDED : Status::OK if report.search
        return gated(report) if @options[:fail_if]
        return Status::WORSE if report.headline.any? { |effect| effect.verdict == :slower }

        report.headline.any? { |effect| effect.verdict == :undecided } ? Status::UNDECIDED : Status::OK
      end

      def gated(report)
        judge_gate(report.effects.map(&:metric).uniq) do |condition|
          judged = report.gate&.find { |result| result.condition == condition.text }
          next judged.failed? if judged

          report.effects.any? { |effect| condition.holds_for?(effect) { estimate(report, effect) } }
        end
      end

      # The estimate of the side's own value, not relative to the base.
      def estimate(report, effect)
        return Analyse::Estimate.new(effect.b, effect.b, effect.b, 1.0, effect.pairs) if effect.exact

        medians = report.medians(effect.name, effect.metric.delete_suffix("_mean"))[effect.side]
        Analyse::Statistics.median_interval(medians, level: 0.99) if medians&.any?
      end
    end
  end
end
