# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/experiment"
require "pitwall/experiment/base"
require "pitwall/experiment/places"

module Pitwall
  module Experiment
    # Searches the commit of a range that changed a benchmark ({Analyse::CommitSearch}). Only the commits that the
    # search asks for are built.
    class Bisection < Base
      # Upper limit of the time of a test that lacks the fewest pairs, in budgets.
      MAX_OVERRUN = 3
      MOST_PAIRS = 2_000
      MIN_PAIRS = Analyse::Sequential::MIN_PAIRS
      private_constant :MAX_OVERRUN, :MOST_PAIRS, :MIN_PAIRS

      # @param commits [Array<Hash>] "id" and "title": the good end first, the bad end last
      # @param range [String] as typed
      # @param skipped [Array<Hash>] commits that can't be the one: "id", "title", "reason"
      # @param explain [Proc] makes the reason of an error's message
      # @yield [Hash] a commit; returns its Subject, or raises CannotMeasure
      #: (Array[Hash[String, String]], Settings, range: String, ?skipped: Array[Hash[String, String]],
      #:  ?explain: ^(String) -> String, ?progress: NullProgress, ?record: Record::Measurements::Writer?)
      #:  { (Hash[String, String]) -> Pitwall::Bench::Subject } -> void
      def initialize(commits, settings, range:, skipped: [], explain: :itself.to_proc, **more, &build)
        super([], settings, **more)
        @commits = commits
        @facts = { "range" => range, "skipped" => skipped.dup }
        @explain = explain
        @build = build
        @search = Analyse::CommitSearch.new(commits.size, alpha: settings.alpha, margin: settings.margin)
        @places = Places.new(settings, random: @random)
        @found = {}
        @plans = {}
      end

      # Searches and returns the report. After Ctrl-C it covers the samples so far.
      # @raise [Pitwall::Bench::Failed] an end of the range can't be measured, or there are several cases
      #: (command: String) -> Analyse::ComparisonReport
      def call(command:)
        run_facts = observe { search }
        ends = [@found[0], @found[@commits.size - 1]].map { |place| place&.subject&.facts.to_h }
        sides = [Places::BEFORE, Places::AFTER].zip(ends).map { |name, facts| Places::Side.new(name, facts) }
        report = Analyse::ComparisonReport.of(@samples, cases: @cases, plans: @plans, sides: sides, command: command,
                                                        **run_facts)
        report.search = @facts.merge!(@search.to_facts(@commits))
        report
      end

      # What a file of measurements has to keep beside the samples.
      #: () -> Hash[String, untyped]
      def facts = @facts

      # Removes the temporary files of the measured processes.
      #: () -> void
      def close = @places.close

      private

      def search
        while (task = @search.task)
          places = task.map { |number| place(number) || break }
          places ? test(task, *places) : next
        end
      end

      # A place that can be measured; nil after it was left out of the search.
      def place(number)
        commit = @commits[number]
        @progress.step("trying #{commit["id"][0, 8]}")
        @found[number] ||= @places.place(@build.call(commit)).tap { one_case }
      rescue CannotMeasure, Pitwall::Bench::Failed => error
        raise if number.zero? || number == @commits.size - 1

        @facts["skipped"] += [commit.merge("reason" => @explain.call(error.message))]
        @search.leave_out(number)
        nil
      end

      def one_case
        return if @places.names.one?

        raise UsageError.new("the search takes one case, and there are #{@places.names.first(8).join(", ")}",
                             advice: { one_case: nil })
      end

      def test(task, before, after)
        blocks = @places.blocks(@places.names.first, before, after)
        own = @settings.budget * 1e9
        started = clock_ns
        deadline, last = [1, MAX_OVERRUN].map { |times| started + (times * own) }
        planned = @settings.max_blocks || (own / [blocks.block_ns, 1].max).floor.clamp(MIN_PAIRS, MOST_PAIRS)
        name = announce(task, planned)
        @search.plan(planned)
        until pair(blocks, name, before)
          break @search.finish if clock_ns + blocks.block_ns > (blocks.done < MIN_PAIRS ? last : deadline)
        end
      ensure
        @failures += blocks.failures if blocks
        @progress.end
      end

      # Measures a pair. Returns whether the test has ended.
      def pair(blocks, name, before)
        samples = blocks.run or return false
        @places.label(samples, name, before)
        samples.each { |sample| @record&.add(sample) }
        @samples.concat(samples)
        @progress.advance
        one, other = samples.partition { |sample| sample.side == Places::BEFORE }.map(&:first)
        @search.add(Analyse::ProcessStatistic.ratio(one, other, "wall"))
      end

      def announce(task, planned)
        before, after = task.map { |number| @commits[number]["id"][0, 8] }
        name = "#{before} → #{after}"
        super(Record::Case.new(index: @cases.size, block: 0, block_name: "", name: name, label: name, params: {},
                               flags: []))
        @plans[name] = planned
        @record&.plan(name, planned)
        @progress.begin(name, planned)
        name
      end
    end
  end
end
