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

module Pitwall
  module Experiment
    # Two or more sides against each other, case by case: blocks of one process a side, until the verdict is clear or the
    # budget is spent.
    class Compare < Base
      CONTROL = Analyse::ComparisonReport::CONTROL
      # How many blocks fit is judged by the first ones: those of the calibration are slower, everything being cold.
      FIRST_BLOCKS = 4
      MOST_BLOCKS = 2_000
      # Times a batch of a slower side may take what one of the base was to take.
      MOST_SLOWER = 10
      private_constant :FIRST_BLOCKS, :MOST_BLOCKS, :MOST_SLOWER

      #: (Array[Pitwall::Bench::Subject], Settings, ?progress: Silence, ?record: Record::Measurements::Writer?) -> void
      # @param subjects the base first
      def initialize(...)
        super
        @comparison = Analyse::Comparison.new(alpha: @settings.alpha, margin: @settings.margin)
        @entries = {}
        @plans = {}
      end

      # Measures, and says what came out. Ctrl-C ends the measuring; what there is then is reported.
      # @param command [String] the command line that repeats it
      # @raise [Pitwall::Bench::Failed] a case can't be measured, or returns different things on two sides (`check`)
      #: (command: String) -> Analyse::ComparisonReport
      def call(command:)
        made = observe do
          @progress.expect(cases: alternatives.size, seconds: @settings.budget, longest: CaseRun::LONGEST * @settings.budget, pairs: @settings.max_blocks)
          alternatives.each { |sides| measure(sides) }
        end
        Analyse::ComparisonReport.of(@samples, cases: @cases, plans: @plans, sides: @subjects, command: command, **made)
      end

      # Removes what was written for the processes. Nothing can be measured after that.
      #: () -> void
      def close = [*measurers, *@control].each(&:close)

      # Profiles all sides of every case once more, and adds to the report whose share changed.
      # @param report what {call} gave
      #: (Analyse::ComparisonReport) -> void
      def explain(report)
        report.why = {}
        entries.each do |name, alternatives|
          changes(alternatives).each { |side, change| report.why[entries.size > 1 ? "#{side}, case #{name}" : side] = change }
        ensure
          @progress.end
        end
      end

      # Counts instructions under callgrind, and adds the effects on them to the report.
      # @raise [CannotMeasure] they can't be counted here
      #: (Analyse::ComparisonReport) -> void
      def count_instructions(report) = count(report, Pitwall::Bench::Instructions, "instructions", "--instructions", "counting instructions")

      # The same for file-system calls.
      # @raise [CannotMeasure] as above
      #: (Analyse::ComparisonReport) -> void
      def count_system_calls(report) = count(report, Pitwall::Bench::SystemCalls, "fs_calls", "--syscalls", "counting file-system calls")

      # The same for objects that live at the end, and their bytes.
      # @raise [CannotMeasure] as above
      #: (Analyse::ComparisonReport) -> void
      def count_retained(report) = count(report, Pitwall::Bench::RetainedObjects, %w[retained retained_bytes], "--retained", "counting retained objects")

      # What was run: name of a case → an entry for each side, the base first.
      # @return [Hash<String, Array<Pitwall::Bench::Blocks::Entry>>]
      attr_reader :entries

      private

      # @param metrics [String, Array<String>] name of the count, or of each of its parts
      def count(report, counter, metrics, option, title)
        entries.each do |name, alternatives|
          counted = counter.new(alternatives, random: @random, progress: steps(title)).call
          raise CannotMeasure, "#{option}: #{name}: #{counted.reason}" if counted.reason

          Array(metrics).each_with_index do |metric, part|
            counts = counted.counts.map { |rounds| rounds.map { |count| count.is_a?(Array) ? count[part] : count } }
            @subjects.drop(1).each_with_index do |subject, at|
              report.effects << Analyse::Instructions.effect(counts[0], counts[at + 1], name: name, base: @subjects.first.name, side: subject.name,
                                                                                        metric: metric, alpha: @settings.alpha, margin: @settings.margin)
            end
          end
        ensure
          @progress.end
        end
      end

      def measurers = @measurers ||= @subjects.map { |subject| Measurers.for(subject, @settings) }

      # For each case that is wanted every side's measurer and case.
      #: () -> Array[Array[[untyped, Record::Case]]]
      def alternatives
        @alternatives ||= begin
          lists = at_once(measurers, &:cases)
          @settings.chosen(lists.first).map { |kase| measurers.zip(lists).map { |measurer, list| [measurer, counterpart(kase, measurer, list)] } }
        end
      end

      # Listing is no measuring: the sides may share the machine.
      def at_once(measurers, &block)
        threads = measurers.map { |measurer| Thread.new { block.call(measurer) }.tap { |thread| thread.report_on_exception = false } }
        threads.map(&:value)
      ensure
        threads&.each(&:kill)&.each(&:join)
      end

      # Whole commands and -e have one case each; the cases of files are told apart by their names.
      def counterpart(kase, measurer, list)
        return list.first if measurer.subject.command || measurer.subject.code

        list.find { |other| other.name == kase.name && other.block_name == kase.block_name } or
          raise Pitwall::Bench::Failed, "#{measurer.subject.name}: has no case #{kase.name}; both sides need the same cases, or --only"
      end

      def measure(sides)
        kase = sides.first.last
        @progress.step("calibrating #{kase.name}") if alternatives.size > 1
        blocks = Pitwall::Bench::Blocks.new(prepare(kase.name, sides), random: @random, in_turns: in_turns?)
        announce(kase)
        run = CaseRun.new(blocks, @comparison, @settings, sides: @subjects.map(&:name)) { |pairs| plan(kase, pairs) }
        @progress.begin(alternatives.size > 1 ? "#{@cases.size}/#{alternatives.size} #{kase.name}" : kase.name, run.planned)
        run.each_block { |samples| keep(samples, kase) }
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

      # Under the name of the base's case: the sides may call it by their own command or code.
      def keep(samples, kase)
        samples.each { |sample| sample.name = kase.name }
        check(samples, kase) if @settings.check
        samples.each { |sample| @record&.add(sample) }
        @samples.concat(samples)
        @progress.advance
      end

      # All sides do the same number of iterations: the base's, or fewer where that would keep a side that is much slower for minutes.
      def prepare(name, sides)
        found = sides.map { |measurer, kase| measurer.calibrate(kase) }
        share = MOST_SLOWER * found.first.iteration_ns / found.map(&:iteration_ns).max
        batch = [(found.first.batch * [share, 1].min).floor, 1].max
        batches = found.map(&:batches).min
        found.each { |calibration| calibration.batch, calibration.batches = batch, batches }
        Pitwall::Bench::Turns.extend(found) if in_turns? && @settings.batches.nil?
        entries = sides.zip(found).map { |(measurer, kase), calibration| Pitwall::Bench::Blocks::Entry.new(measurer: measurer, case: kase, calibration: calibration) }
        @entries[name] = entries
        @settings.control ? entries + [control_entry(*sides.first, found.first)] : entries
      end

      def steps(title)
        @progress.step(title)
        ->(done, all) { done == 1 ? @progress.begin(title, all) : @progress.advance }
      end

      # Side → what changed from the base to it.
      def changes(alternatives)
        Dir.mktmpdir("pitwall-why") do |folder|
          profiles = Pitwall::Bench::Profiles.new(alternatives, folder: folder, random: @random, timeout: @settings.timeout, progress: steps("profiling")).call
          @subjects.drop(1).each_with_index.to_h do |subject, at|
            [subject.name, profiles.reason ? Analyse::ProfileChange::Result.refused(profiles.reason) : change(profiles, at + 1)]
          end
        end
      end

      def change(profiles, number)
        base, side = [0, number].map do |at|
          Analyse::ProfileChange::Side.new(recordings: profiles.recordings[at].map(&:segments), iterations: profiles.iterations[at], base: @subjects[at].root || @subjects[at].dir)
        end
        Analyse::ProfileChange.compare(a: base, b: side, weight: :cpu, within: profiles.within)
      end

      def control_entry(measurer, kase, calibration)
        @control ||= Measurers.for(measurer.subject.dup.tap { |subject| subject.name = CONTROL }, @settings)
        Pitwall::Bench::Blocks::Entry.new(measurer: @control, case: kase, calibration: calibration)
      end

      def check(samples, kase)
        told = samples.reject { |sample| sample.digest.nil? }.group_by(&:digest)
        return if told.size < 2

        one, other = told.values.map(&:first).first(2).sort_by { |sample| sample.side == @subjects.first.name ? 0 : 1 }
        raise Different, "#{one.name}: returns something else each time, which --check can't compare" unless once_more(kase) == base_of(samples).digest

        raise Different, "#{one.name}: #{one.side} and #{other.side} return different results: #{shown(one)} and #{shown(other)}"
      end

      # What the base returns in another process.
      def once_more(kase)
        entry = entries[kase.name].first
        entry.measurer.sample(entry.case, entry.calibration, block: 0, order: 0).digest
      end

      def base_of(samples) = samples.find { |sample| sample.side == @subjects.first.name }

      def shown(sample) = sample.digest.size > 60 ? "#{sample.digest[0, 60]}…" : sample.digest

      # One case: its blocks, and the sequential test that says when they are enough.
      class CaseRun
        # By how much the fewest pairs may overrun the budget.
        LONGEST = 3
        FEWEST = Analyse::Sequential::MIN_PAIRS
        private_constant :FEWEST

        # The block is told how many pairs are planned, once that is known.
        def initialize(blocks, comparison, settings, sides:, &on_plan)
          @blocks = blocks
          @comparison = comparison
          @settings = settings
          @sides = sides
          begun = clock_ns
          @deadline = begun + budget_ns
          @latest = [begun + LONGEST * settings.budget * 1e9, @deadline].max
          @taken = []
          @on_plan = on_plan
        end

        # How many blocks there will be at most.
        #: () -> Integer
        def planned
          most = @settings.max_blocks || MOST_BLOCKS
          [until_then(@deadline), [until_then(@latest), FEWEST].min].max.clamp(1, most)
        end

        # Runs blocks until the verdict is clear or the budget is spent.
        def each_block
          until over?
            samples = @blocks.run or next
            yield samples
            break if decided?(samples.reject { |sample| sample.side == CONTROL })
          end
        ensure
          procedure unless @taken.empty?
        end

        private

        # Fewer than FEWEST pairs give no verdict, so FEWEST pairs may take up to LONGEST times the budget.
        # The calibration ran with cold caches, so its time is more than a pair will take.
        def budget_ns
          least = (FEWEST + 1) * @blocks.block_ns
          own = @settings.budget * 1e9
          return [least, own].max if least <= LONGEST * own || @settings.max_blocks

          raise Pitwall::Bench::Failed, format("a pair takes up to %.1f s: the %d that are needed don't fit; --budget %d holds them, --pairs N takes fewer (for counts)",
                                               @blocks.block_ns / 1e9, FEWEST, (least / 1e9 / 5).ceil * 5)
        end

        # Pairs that will have been taken then.
        def until_then(deadline) = @blocks.done + ([deadline - clock_ns, 0].max / [@blocks.block_ns, 1.0].max).floor

        # Where pairs take longer than they did at first, the fewest are taken all the same.
        def over?
          return true if @blocks.done >= (@settings.max_blocks || MOST_BLOCKS)

          @blocks.done.positive? && clock_ns + @blocks.block_ns > (@blocks.done < FEWEST ? @latest : @deadline)
        end

        def decided?(samples)
          @taken << samples
          return procedure.add(samples)&.stop? if @procedure
          return false if @blocks.done < FIRST_BLOCKS

          @taken.filter_map { |block| procedure.add(block) }.any?(&:stop?)
        end

        # Planned when the first blocks have shown what a block takes.
        def procedure
          @procedure ||= begin
            plan = Analyse::Sequential::Plan.new(planned)
            @on_plan&.call(plan.max_pairs)
            Analyse::Sequential::Procedure.new(comparison: @comparison, plan: plan, base: @sides.first, sides: @sides.drop(1))
          end
        end

        def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      end
      private_constant :CaseRun
    end
  end
end
