# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/experiment"
require "pitwall/experiment/base"
require "pitwall/experiment/places"

module Pitwall
  module Experiment
    # Measures each commit of a range against the one before it, then all together. Commits that changed the time are
    # then measured on the base alone.
    #
    # A commit that can't be measured is skipped. The next one is measured against the last one that can be.
    class Commits < Base
      # Commits that are tried alone, of each case.
      ALONE = 3

      # The comparisons of a case, at most: each commit, all together, and those that are tried alone. The first one
      # always is alone on the base.
      # @param commits number of commits that can be built
      #: (Integer) -> Integer
      def self.comparisons(commits) = commits > 1 ? commits + 1 + [ALONE, commits - 1].min : 1

      # Upper limit of the time for the fewest pairs, in budgets.
      MAX_OVERRUN = 3
      MOST_PAIRS = 2_000
      TITLE = 60 # characters of a commit's title in a name
      MIN_PAIRS = Analyse::Sequential::MIN_PAIRS
      private_constant :MAX_OVERRUN, :MOST_PAIRS, :TITLE, :MIN_PAIRS

      # The code of a commit. subject: Pitwall::Bench::Subject · commits: Array of {"id", "title"}: the commit, after
      # those before it that can't be measured; empty for the base
      Tree = Struct.new(:subject, :commits)
      # A tree that can be measured: its Places::Place, and the commits as in Tree.
      Found = Struct.new(:place, :commits)
      # A comparison: a unit with its earlier place and its blocks.
      Live = Struct.new(:unit, :before, :blocks)
      private_constant :Found, :Live

      # @param trees the base first, then each commit, the oldest first
      # @param range [String] as typed
      # @param skipped [Array<Hash>] commits that are not measured: "id", "title", "reason"
      # @param explain [Proc] makes the reason of an error's message
      # @yield [Hash] a commit; returns the Subject of its change on the base alone, or raises CannotMeasure
      #: (Array[Tree], Settings, range: String, ?skipped: Array[Hash[String, String]], ?progress: NullProgress,
      #:  ?explain: ^(String) -> String, ?record: Record::Measurements::Writer?)
      #:  { (Hash[String, String]) -> Pitwall::Bench::Subject } -> void
      def initialize(trees, settings, range:, skipped: [], explain: :itself.to_proc, **more,
                     &apart)
        super(trees.map(&:subject), settings, **more)
        @trees = trees
        @facts = { "range" => range, "skipped" => skipped.dup, "units" => [], "apart" => [] }
        @explain = explain
        @apart = apart
        @comparison = Analyse::Comparison.new(alpha: settings.alpha, margin: settings.margin)
        @plans = {}
        @places = Places.new(settings, random: @random)
      end

      # Measures and returns the report. After Ctrl-C it covers the samples so far.
      # @raise [Pitwall::Bench::Failed] fewer than two trees can be measured, or the fewest pairs don't fit the budget
      #: (command: String) -> Analyse::ComparisonReport
      def call(command:) = report(**observe { measure }, command: command)

      # What a file of measurements has to keep beside the samples.
      #: () -> Hash[String, untyped]
      def facts = @facts

      # Removes the temporary files of the measured processes.
      #: () -> void
      def close = @places.close

      private

      def report(settings: @settings.to_facts, **facts)
        sides = [[Places::BEFORE, @trees.first], [Places::AFTER, @trees.last]]
        sides = sides.map { |name, tree| Places::Side.new(name, tree.subject.facts) }
        report = Analyse::ComparisonReport.of(@samples, cases: @cases, plans: @plans, sides: sides,
                                                        settings: settings, **facts)
        report.commits = Analyse::CommitEffects.new(report, @facts)
        report
      end

      def measure
        places = usable
        run(lives(places))
        run(lives_alone(places.first)) if @apart && places.size > 2
      end

      # --- trees

      def usable
        waiting = []
        found = @trees.filter_map do |tree|
          place = try(tree.subject)
          Found.new(place, waiting + tree.commits).tap { waiting = [] }
        rescue Pitwall::Bench::Failed => error
          skip(tree, error)
          # Before the first tree that can be measured there is nothing to compare with.
          waiting += tree.commits if @places.names
          @failed = error
          nil
        end
        if @failed && (late = found.first&.commits&.last)
          list(late, "no commit before it can be measured") unless listed?(late)
        end
        return found if found.size > 1

        raise @failed || Pitwall::Bench::Failed.new("nothing to compare: one commit can be measured")
      end

      def try(subject)
        @progress.step("trying #{subject.name}")
        @places.place(subject)
      end

      def skip(tree, error)
        commits = tree.commits.empty? ? [{ "id" => tree.subject.name, "title" => "the base" }] : tree.commits.last(1)
        commits.each { |commit| list(commit, @explain.call(error.message)) }
      end

      # Lists a commit that isn't measured, once, with the last reason.
      def list(commit, reason)
        @facts["skipped"] = @facts["skipped"].reject { |each| each["id"] == commit["id"] }
        @facts["skipped"] << commit.merge("reason" => reason)
      end

      def listed?(commit) = @facts["skipped"].any? { |each| each["id"] == commit["id"] }

      # --- comparisons

      def lives(places)
        @places.names.flat_map do |name|
          steps = places.each_cons(2).map { |before, after| live("step", name, before, after) }
          steps.size > 1 ? [*steps, live("together", name, places.first, places.last)] : steps
        end
      end

      def lives_alone(base)
        known = report(host: {}, losses: {}).commits
        known.to_be_tried_alone(ALONE).group_by(&:commits).flat_map do |commits, units|
          alone(base, commits, units)
        end
      end

      def alone(base, commits, units)
        raise CannotMeasure, "needs #{commits.first["id"][0, 8]}, which can't be measured" if commits.size > 1

        found = Found.new(try(@apart.call(commits.first)), commits)
        units.map { |unit| live("alone", unit.kase, base, found) }
      rescue CannotMeasure, Pitwall::Bench::Failed => error
        @facts["apart"] += units.map do |unit|
          { "name" => name("alone", commits, unit.kase), "kind" => "alone", "case" => unit.kase, "commits" => commits,
            "reason" => @explain.call(error.message) }
        end
        []
      end

      def live(kind, kase, before, after)
        commits = after.commits
        unit = Analyse::CommitEffects::Unit.new(name: name(kind, commits, kase), kind: kind, kase: kase,
                                                commits: kind == "together" ? [] : commits)
        Live.new(unit, before.place, @places.blocks(kase, before.place, after.place))
      end

      def name(kind, commits, kase)
        last = commits.last
        title = last["title"].to_s
        title = "#{title[0, TITLE - 1]}…" if title.size > TITLE
        words = kind == "together" ? "all together" : "#{last["id"][0, 8]} #{title}".strip
        words += ", alone" if kind == "alone"
        @places.names.size > 1 ? "#{words}: #{kase}" : words
      end

      # --- measuring

      def run(lives)
        return if lives.empty?

        deadline, last_deadline = deadlines(lives)
        plan(lives, deadline)
        budget = Analyse::DividedBudget.new(lives.to_h { |live| [live.unit.name, @plans[live.unit.name]] },
                                            comparison: @comparison, base: Places::BEFORE, side: Places::AFTER)
        by_name = lives.to_h { |live| [live.unit.name, live] }
        while (name = budget.next)
          live = by_name.fetch(name)
          break if clock_ns + live.blocks.block_ns > (budget.enough? ? deadline : last_deadline)

          block(live, budget)
        end
      ensure
        @failures += lives.sum { |each| each.blocks.failures }
        @progress.end
      end

      def block(live, budget)
        samples = live.blocks.run or return
        @places.label(samples, live.unit.name, live.before)
        samples.each { |sample| @record&.add(sample) }
        @samples.concat(samples)
        budget.add(live.unit.name, samples)
        @progress.advance
      rescue Pitwall::Bench::Failed => error
        budget.stop(live.unit.name)
        live.unit.commits.last(1).each { |commit| list(commit, @explain.call(error.message)) }
      end

      # When measuring ends, and when it ends as long as a comparison lacks the fewest pairs.
      def deadlines(lives)
        started = clock_ns
        own = @settings.budget * lives.size * 1e9
        least = (MIN_PAIRS + 1) * lives.sum { |live| live.blocks.block_ns }
        if least > MAX_OVERRUN * own && @settings.max_blocks.nil?
          needed = (least / lives.size / 1e9 / 5).ceil * 5
          raise Pitwall::Bench::Failed.new("the #{MIN_PAIRS} pairs that each commit needs don't fit",
                                           advice: { budget: needed })
        end

        [started + [own, @settings.max_blocks ? 0 : least].max, started + (MAX_OVERRUN * own)]
      end

      def plan(lives, deadline)
        share = (deadline - clock_ns) / lives.size
        lives.each do |live|
          fair = share / [live.blocks.block_ns, 1].max
          pairs = @settings.max_blocks || (Analyse::DividedBudget::SHARES * fair).floor.clamp(MIN_PAIRS, MOST_PAIRS)
          announce(live, pairs)
        end
        @progress.expect(cases: lives.size, seconds: @settings.budget, longest: MAX_OVERRUN * @settings.budget,
                         pairs: @settings.max_blocks)
        pairs = lives.sum { |live| [share / [live.blocks.block_ns, 1].max, @plans[live.unit.name]].min }
        @progress.begin("measuring commits", pairs.floor)
      end

      def announce(live, pairs)
        @facts["units"] << live.unit.to_facts
        @plans[live.unit.name] = pairs
        super(Record::Case.new(index: @cases.size, block: 0, block_name: "", name: live.unit.name,
                               label: live.unit.name, params: {}, flags: []))
        @record&.plan(live.unit.name, pairs)
      end
    end
  end
end
