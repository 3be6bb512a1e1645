# frozen_string_literal: true

require "tmpdir"
require "pitwall/analyse"
require "pitwall/bench/blocks"
require "pitwall/bench/instructions"
require "pitwall/bench/retained_objects"
require "pitwall/bench/system_calls"
require "pitwall/bench/profiles"
require "pitwall/experiment"
require "pitwall/experiment/base"
require "pitwall/experiment/same_iterations"

module Pitwall
  module Experiment
    # Compares two or more sides, case by case, in blocks. A block is one process of each side.
    # A case ends when its verdict is clear or its budget is spent.
    class Compare < Base
      CONTROL = Analyse::ComparisonReport::CONTROL
      # The number of blocks that fit is planned after this many blocks. Calibration can't tell a block's time,
      # because calibration runs with cold caches and is slower.
      PLANNING_BLOCKS = 4
      MAX_BLOCKS = 2_000
      private_constant :PLANNING_BLOCKS, :MAX_BLOCKS

      #: (Array[Pitwall::Bench::Subject], Settings, ?progress: NullProgress,
      #:  ?record: Record::Measurements::Writer?) -> void
      # @param subjects the sides; the base is the first
      def initialize(...)
        super
        @comparison = Analyse::Comparison.new(alpha: @settings.alpha, margin: @settings.margin)
        @entries = {}
        @plans = {}
      end

      # Measures all cases and returns the report. After Ctrl-C the report covers the samples so far.
      # @param command [String] the command line that repeats the measurement
      # @raise [Pitwall::Bench::Failed] a case can't be measured
      # @raise [ResultsDiffer] a case returns different results on two sides (setting `check`)
      #: (command: String) -> Analyse::ComparisonReport
      def call(command:)
        run_facts = observe do
          @progress.expect(cases: cases_by_side.size, seconds: @settings.budget,
                           longest: CaseRun::MAX_OVERRUN * @settings.budget, pairs: @settings.max_blocks)
          cases_by_side.each { |sides| measure(sides) }
        end
        Analyse::ComparisonReport.of(@samples,
                                     cases: @cases, plans: @plans, sides: @subjects, command: command,
                                     **run_facts)
      end

      # Removes the temporary files of the measured processes. Nothing can be measured afterwards.
      #: () -> void
      def close = [*measurers, *@control].each(&:close)

      # Profiles all sides of every case, and adds to the report which methods' share changed.
      # @param report the return value of {call}
      #: (Analyse::ComparisonReport) -> void
      def explain(report)
        report.why = {}
        entries.each do |name, side_entries|
          changes(side_entries).each do |side, change|
            report.why[entries.size > 1 ? "#{side}, case #{name}" : side] = change
          end
        ensure
          @progress.end
        end
      end

      # Counts instructions under callgrind, and adds their effects to the report.
      # @raise [CannotMeasure] instructions can't be counted here
      #: (Analyse::ComparisonReport) -> void
      def count_instructions(report)
        count(report, Pitwall::Bench::Instructions, "instructions", "--instructions", "counting instructions")
      end

      # Counts file-system calls, and adds their effects to the report.
      # @raise [CannotMeasure] file-system calls can't be counted here
      #: (Analyse::ComparisonReport) -> void
      def count_system_calls(report)
        count(report, Pitwall::Bench::SystemCalls, "fs_calls", "--syscalls", "counting file-system calls")
      end

      # Counts the objects that live at the program's end, and their bytes. Adds both effects to the report.
      # @raise [CannotMeasure] objects can't be counted here
      #: (Analyse::ComparisonReport) -> void
      def count_retained(report)
        metrics = %w[retained retained_bytes]
        count(report, Pitwall::Bench::RetainedObjects, metrics, "--retained", "counting retained objects")
      end

      # The entries that were run: name of a case → an entry for each side, the base first.
      # @return [Hash<String, Array<Pitwall::Bench::Blocks::Entry>>]
      attr_reader :entries

      private

      # @param metrics [String, Array<String>] the count's metric; several metrics where each count is an Array of parts
      # @param option [String] the command-line option, for errors
      # @param title [String] the progress bar's title
      def count(report, counter, metrics, option, title)
        entries.each do |name, side_entries|
          counted = counter.new(side_entries, random: @random, progress: progress_proc(title)).call
          raise CannotMeasure, "#{option}: #{name}: #{counted.reason}" if counted.reason

          Array(metrics).each_with_index do |metric, part|
            counts = counted.counts.map { |rounds| rounds.map { |count| count.is_a?(Array) ? count[part] : count } }
            add_effects(report, counts, name, metric)
          end
        ensure
          @progress.end
        end
      end

      # @param counts [Array<Array<Integer>>] for each side, the base first: the count of each round
      def add_effects(report, counts, name, metric)
        counted = Record::Measurements::Counts.new(name: name, metric: metric,
                                                   sides: @subjects.map(&:name).zip(counts).to_h)
        @record&.count(counted)
        report.add_counts(counted)
      end

      def measurers = @measurers ||= @subjects.map { |subject| Measurers.for(subject, @settings) }

      # For each selected case: the measurer and the case of every side, the base first.
      #: () -> Array[Array[[untyped, Record::Case]]]
      def cases_by_side
        @cases_by_side ||= begin
          lists = in_threads(measurers, &:cases)
          @settings.select_cases(lists.first).map do |kase|
            measurers.zip(lists).map { |measurer, list| [measurer, counterpart(kase, measurer, list)] }
          end
        end
      end

      # Calls the block for all measurers at the same time. Listing cases is not timed, so sides may share the cores.
      def in_threads(measurers, &block)
        threads = measurers.map do |measurer|
          Thread.new { block.call(measurer) }.tap { |thread| thread.report_on_exception = false }
        end
        threads.map(&:value)
      ensure
        threads&.each(&:kill)&.each(&:join)
      end

      # The same case on another side. Whole commands and -e have one case each; cases of files match by name.
      def counterpart(kase, measurer, list)
        return list.first if measurer.subject.command || measurer.subject.code

        list.find { |other| other.name == kase.name && other.block_name == kase.block_name } or
          raise(Pitwall::Bench::Failed.new("#{measurer.subject.name}: has no case #{kase.name}",
                                           advice: { same_cases: nil }))
      end

      def measure(sides)
        kase = sides.first.last
        @progress.step("calibrating #{kase.name}") if cases_by_side.size > 1
        blocks = Pitwall::Bench::Blocks.new(prepare(kase.name, sides), random: @random, in_turns: in_turns?)
        announce(kase)
        run = CaseRun.new(blocks, @comparison, @settings, sides: @subjects.map(&:name)) { |pairs| plan(kase, pairs) }
        number = "#{@cases.size}/#{cases_by_side.size} " if cases_by_side.size > 1
        @progress.begin("#{number}#{kase.name}", run.planned)
        run.each_block { |samples| add_samples(samples, kase) }
      ensure
        @failures += blocks.failures if blocks
        @progress.end
      end

      # Whole commands have no batches.
      def in_turns? = @settings.in_turns && @subjects.none?(&:command)

      def plan(kase, pairs)
        @plans[kase.name] = pairs
        @record&.plan(kase.name, pairs)
      end

      # Adds a block's samples under the name of the base's case. Another side's command or code may have another name.
      def add_samples(samples, kase)
        samples.each { |sample| sample.name = kase.name }
        check_results(samples, kase) if @settings.check
        samples.each { |sample| @record&.add(sample) }
        @samples.concat(samples)
        @progress.advance
      end

      # Calibrates all sides to the same number of iterations.
      def prepare(name, sides)
        calibrations = sides.map { |measurer, kase| measurer.calibrate(kase) }
        SameIterations.apply(calibrations, extend: in_turns? && @settings.batches.nil?)
        entries = sides.zip(calibrations).map do |(measurer, kase), calibration|
          Pitwall::Bench::Blocks::Entry.new(measurer: measurer, case: kase, calibration: calibration)
        end
        @entries[name] = entries
        @settings.control ? entries + [control_entry(*sides.first, calibrations.first)] : entries
      end

      # A Proc that shows how many of all runs are done.
      def progress_proc(title)
        @progress.step(title)
        ->(done, all) { done == 1 ? @progress.begin(title, all) : @progress.advance }
      end

      # Name of a side → the changes of its profile relative to the base's.
      def changes(side_entries)
        Dir.mktmpdir("pitwall-why") do |folder|
          profiles = Pitwall::Bench::Profiles.new(side_entries,
                                                  folder: folder, random: @random, timeout: @settings.timeout,
                                                  progress: progress_proc("profiling")).call
          refused = Analyse::ProfileChange::Result.refused(profiles.reason) if profiles.reason
          @subjects.drop(1).each_with_index.to_h { |subject, at| [subject.name, refused || change(profiles, at + 1)] }
        end
      end

      def change(profiles, number)
        base, side = [0, number].map do |at|
          Analyse::ProfileChange::Side.new(recordings: profiles.recordings[at].map(&:segments),
                                           iterations: profiles.iterations[at],
                                           base: @subjects[at].root || @subjects[at].dir)
        end
        Analyse::ProfileChange.compare(a: base, b: side, weight: :cpu, within: profiles.within)
      end

      def control_entry(measurer, kase, calibration)
        @control ||= Measurers.for(measurer.subject.dup.tap { |subject| subject.name = CONTROL }, @settings)
        Pitwall::Bench::Blocks::Entry.new(measurer: @control, case: kase, calibration: calibration)
      end

      def check_results(samples, kase)
        by_digest = samples.reject { |sample| sample.digest.nil? }.group_by(&:digest)
        return if by_digest.size < 2

        one, other = by_digest.values.map(&:first).first(2)
                              .sort_by { |sample| sample.side == @subjects.first.name ? 0 : 1 }
        unless fresh_base_digest(kase) == base_of(samples).digest
          raise ResultsDiffer, "#{one.name}: returns something else each time, which --check can't compare"
        end

        raise ResultsDiffer, "#{one.name}: #{one.side} and #{other.side} return different results: " \
                             "#{short_digest(one)} and #{short_digest(other)}"
      end

      # Digest of the base's result in one more process. The digest differs from the first one when results are random.
      def fresh_base_digest(kase)
        entry = entries[kase.name].first
        entry.measurer.sample(entry.case, entry.calibration, block: 0, order: 0).digest
      end

      def base_of(samples) = samples.find { |sample| sample.side == @subjects.first.name }

      def short_digest(sample) = sample.digest.size > 60 ? "#{sample.digest[0, 60]}…" : sample.digest

      # Runs the blocks of one case until a sequential test decides or the budget is spent.
      class CaseRun
        # Upper limit of the time for the first MIN_PAIRS pairs, in budgets.
        MAX_OVERRUN = 3
        MIN_PAIRS = Analyse::Sequential::MIN_PAIRS
        private_constant :MIN_PAIRS

        # @yield [Integer] the number of planned pairs, once after the first PLANNING_BLOCKS blocks
        def initialize(blocks, comparison, settings, sides:, &on_plan)
          @blocks = blocks
          @comparison = comparison
          @settings = settings
          @sides = sides
          started = clock_ns
          @deadline = started + budget_ns
          @last_deadline = [started + MAX_OVERRUN * settings.budget * 1e9, @deadline].max
          @blocks_so_far = []
          @on_plan = on_plan
        end

        # Upper limit of the number of blocks.
        #: () -> Integer
        def planned
          most = @settings.max_blocks || MAX_BLOCKS
          [pairs_until(@deadline), [pairs_until(@last_deadline), MIN_PAIRS].min].max.clamp(1, most)
        end

        # Runs blocks until the verdict is clear or the budget is spent.
        # @yield [Array<Record::Sample>] the samples of each block
        #: () { (Array[Record::Sample]) -> void } -> void
        def each_block
          until over?
            samples = @blocks.run or next
            yield samples
            break if decided?(samples.reject { |sample| sample.side == CONTROL })
          end
        ensure
          procedure unless @blocks_so_far.empty?
        end

        private

        # Fewer than MIN_PAIRS pairs give no verdict, so MIN_PAIRS pairs may take up to MAX_OVERRUN times the budget.
        # Calibration ran with cold caches, so its time is longer than a later pair's.
        def budget_ns
          least = (MIN_PAIRS + 1) * @blocks.block_ns
          own = @settings.budget * 1e9
          return [least, own].max if least <= MAX_OVERRUN * own || @settings.max_blocks

          needed = format("a pair takes up to %.1f s: the %d that are needed don't fit",
                          @blocks.block_ns / 1e9, MIN_PAIRS)
          raise Pitwall::Bench::Failed.new(needed, advice: { budget: (least / 1e9 / 5).ceil * 5 })
        end

        # Number of pairs that will be done at the deadline.
        def pairs_until(deadline) = @blocks.done + ([deadline - clock_ns, 0].max / [@blocks.block_ns, 1.0].max).floor

        # Whether no further block may run. The first MIN_PAIRS pairs have the later deadline:
        # they run even when pairs turn out to be slower than the calibration showed.
        def over?
          return true if @blocks.done >= (@settings.max_blocks || MAX_BLOCKS)

          deadline = @blocks.done < MIN_PAIRS ? @last_deadline : @deadline
          @blocks.done.positive? && clock_ns + @blocks.block_ns > deadline
        end

        def decided?(samples)
          @blocks_so_far << samples
          return procedure.add(samples)&.stop? if @procedure
          return false if @blocks.done < PLANNING_BLOCKS

          @blocks_so_far.filter_map { |block| procedure.add(block) }.any?(&:stop?)
        end

        # The sequential test. Created after PLANNING_BLOCKS blocks, whose time tells how many pairs fit.
        def procedure
          @procedure ||= begin
            plan = Analyse::Sequential::Plan.new(planned)
            @on_plan&.call(plan.max_pairs)
            Analyse::Sequential::Procedure.new(comparison: @comparison, plan: plan,
                                               base: @sides.first, sides: @sides.drop(1))
          end
        end

        def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      end
      private_constant :CaseRun
    end
  end
end
