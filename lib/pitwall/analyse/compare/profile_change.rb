# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Which methods' weight changed from side A to side B beyond noise: profiles of both, method by method.
    #
    # With three recordings a side or more the noise is what lies between them, and weights are ns per iteration where iterations
    # are known, so that one method's growth doesn't shrink the others; else they are shares of the whole. With fewer, it is
    # that of sampling within a recording (WithinRun), and only shares are compared. A share also changes where only the rest did: so
    # of shares it is told as well whether the time itself, per recording, changed beyond noise.
    #
    # Every method's self weight and total is a test; Holm's correction holds the chance that *any* of them is wrongly
    # called changed below 1 − level. A method enters when it has LEAST of the whole, both sides taken together, which
    # doesn't depend on what differs between them.
    class ProfileChange
      autoload :BetweenRuns, "pitwall/analyse/compare/profile_change/between_runs"
      autoload :Callers, "pitwall/analyse/compare/profile_change/callers"
      autoload :Names, "pitwall/analyse/compare/profile_change/names"
      autoload :Pair, "pitwall/analyse/compare/profile_change/pair"
      autoload :Run, "pitwall/analyse/compare/profile_change/run"
      autoload :WithinRun, "pitwall/analyse/compare/profile_change/within_run"

      # Share of the whole below which a method is not tested.
      LEAST = 0.0025
      # Recordings a side from which the noise between them can be told.
      RUNS = 3
      # Changed methods whose callers are looked into.
      PATHS = 10
      POWER = 0.8
      # What a method's time in two recordings differs by where nothing tells how runs differ.
      ONE_RUN = 0.03
      # A method with this share of the whole is where everything runs.
      EVERYTHING = 0.95
      private_constant :PATHS, :POWER

      # One side. recordings: one list of segments each (Record::Recording#segments); iterations: how often each of them ran
      # what is measured (1 for a whole command), nil: unknown; base: the folder of its code, which doesn't tell its methods
      # from the other side's.
      Side = Struct.new(:recordings, :iterations, :base, keyword_init: true)

      # A weight on both sides, in the result's unit; shares are of the whole. difference: B − A with the interval of its Holm
      # step, which excludes 0 exactly where changed; p: nil where it was too little to be tested, and low and high are nil.
      # Where the unit is shares, times: ns a recording by side, and time: their difference with its interval; else nil.
      # lasting: the time changed, not the share alone.
      Delta = Struct.new(:a, :b, :a_share, :b_share, :difference, :p, :changed, :times, :time, :lasting) do
        # What rows are in the order of: times before shares.
        #: () -> [Float, Float]
        def rank = [lasting && time ? time.point.abs : 0.0, difference.point.abs]
      end

      # A method. lines: where it is defined, by side, 0 unknown; callers: the way most of its change comes (Callers::Step),
      # of its self weight where that changed, else of its total.
      Row = Struct.new(:name, :path, :kind, :lines, :own, :total, :callers, keyword_init: true) do
        #: () -> bool
        def changed? = own.changed || total.changed

        #: () -> bool
        def everything? = [total.a_share, total.b_share].min >= EVERYTHING

        # :gone where B has no sample of it, :new where A has none, else :both.
        #: () -> Symbol
        def presence = total.b.zero? ? :gone : (total.a.zero? ? :new : :both)
      end

      # unit: :iteration (weights in ns per iteration) or :share (weights between 0 and 1).
      # noise: :between_runs or :within_run. runs: recordings by side. threads: most that a recording
      # weighs, whose times are added up. wholes: by side what each recording weighs, in ns.
      # means: by side the weight of one iteration in ns, nil where iterations aren't known.
      # rows: the largest change of self weight first. tests: how many. detectable: a change of a self weight that would have been
      # seen in four of five cases, as a share of the whole (of A's mean where the unit is ns), nil where nothing was tested.
      # notes: what makes the sides hard to compare. reason: why nothing could be compared, else nil.
      Result = Struct.new(:weight, :unit, :noise, :level, :runs, :threads, :wholes, :means, :rows, :tests, :detectable, :notes, :reason, keyword_init: true) do
        # There are no profiles to compare, and why.
        #: (String) -> Result
        def self.refused(reason)
          new(weight: :cpu, unit: :share, noise: :between_runs, level: 0.95, runs: [0, 0], threads: 0, wholes: [[], []], means: [nil, nil], rows: [], tests: 0, notes: [], reason: reason)
        end

        # Methods whose self weight changed, the largest change first; those of which only the share did come last.
        #: () -> Array[Row]
        def changed = rows.select { |row| row.own.changed }

        # Methods whose total changed though their self weight did not, and that are not callers of one that did; nor such
        # as everything runs in, whose total is the whole.
        #: () -> Array[Row]
        def changed_below
          known = changed.flat_map { |row| row.callers.map { |step| [step.name, step.path] } }
          rows.select { |row| row.total.changed && !row.own.changed && !row.everything? && !known.include?([row.name, row.path]) }
              .sort_by { |row| [*row.total.rank.map(&:-@), row.name] }
        end
      end

      # Means of both sides with their standard errors, as Statistics::Parts.
      Difference = Struct.new(:a, :b, :standard_error, :degrees) do
        # The degrees of freedom are Welch's and Satterthwaite's.
        def self.between(a, b)
          squares = [a, b].map { |part| part.standard_error**2 }
          shares = squares.zip([a, b]).sum { |square, part| square**2 / part.degrees }
          new(a.point, b.point, Math.sqrt(squares.sum), shares.zero? ? a.degrees + b.degrees : squares.sum**2 / shares)
        end

        def point = b - a

        # Two-sided.
        def p
          return point.zero? ? 1.0 : 0.0 if standard_error.zero?

          2 * Statistics.student_cdf(-(point / standard_error).abs, degrees)
        end

        def reach(alpha) = -Statistics.student_quantile(alpha / 2, degrees) * standard_error

        def estimate(alpha, count) = Estimate.new(point, point - reach(alpha), point + reach(alpha), 1 - alpha, count)
      end
      private_constant :Difference

      # @param weight [Symbol] :wall or :cpu
      # @param within [Array<String>] names of methods: only what runs inside them counts; empty: everything
      # @param labels [Hash{String => String}, nil] of labels: only what ran under all of them counts
      # @param level [Float] 1 − the chance that any method is wrongly called changed
      # @return [Result]
      #: (a: Side, b: Side, ?weight: Symbol, ?within: Array[String], ?labels: Hash[String, String]?, ?level: Float) -> Result
      def self.compare(a:, b:, weight: :wall, within: [], labels: nil, level: 0.95)
        new([a, b], weight, within, labels, level).result
      end

      #: (Array[Side], Symbol, Array[String], Hash[String, String]?, Float) -> void
      def initialize(sides, weight, within, labels, level)
        @weight = weight
        @level = level
        @headers = sides.map { |side| side.recordings.flatten.map(&:header) }
        @names = Names.new(sides.map(&:base), blocks: walks.size == 1)
        @runs = sides.each_with_index.map do |side, at|
          side.recordings.map { |segments| Run.new(segments, @names, at, weight: weight, within: within, labels: labels) }
        end
        @between = @runs.all? { |runs| runs.size >= RUNS }
        @iterations = sides.map(&:iterations)
        @per_iteration = @between && @iterations.all?
      end

      #: () -> Result
      def result
        reason = obstacle
        rows = reason ? [] : tested_rows
        Result.new(weight: @weight, unit: @per_iteration ? :iteration : :share, noise: @between ? :between_runs : :within_run, level: @level,
                   runs: @runs.map(&:size), threads: @runs.flatten.map(&:threads).max || 0, wholes: @runs.map { |runs| runs.map(&:whole) }, means: means, rows: rows,
                   tests: reason ? 0 : tests.size, detectable: reason ? nil : detectable, notes: notes, reason: reason)
      end

      private

      def obstacle
        empty = @runs.index { |runs| runs.empty? || runs.any? { |run| run.whole.zero? } }
        "side #{%w[A B][empty]} has a recording without any sample of what is compared" if empty
      end

      # How its Rubies take stacks: where they differ, only one of them tells blocks from their methods.
      def walks = @headers.flatten.map(&:walk).uniq

      def notes
        notes = []
        notes << "one side's Ruby can't tell a block from its method: blocks count for their methods on both" if walks.size > 1
        modes = @headers.map { |headers| headers.map(&:mode).uniq }
        if modes[0] != modes[1]
          notes << "the sides were sampled in different modes (#{modes.flatten.uniq.compact.join(", ")}), which see different methods"
        end
        notes
      end

      def means
        @runs.zip(@iterations).map { |runs, iterations| runs.sum(&:whole).fdiv(runs.size * iterations) if iterations && !runs.empty? }
      end

      # By side and run what a weight is divided by.
      def divisors
        @divisors ||= @runs.zip(@iterations).map { |runs, iterations| runs.map { |run| @per_iteration ? iterations : run.whole } }
      end

      # [kind, number] of what is tested. A total that is all the method's own is no second test.
      def tests
        @tests ||= begin
          runs = @runs.flatten
          least = runs.sum(&:whole) * LEAST
          (1...@names.size).flat_map do |number|
            kinds = %i[own total].select { |kind| runs.sum { |run| run.public_send(kind)[number] } >= least }
            kinds.delete(:total) if kinds.size == 2 && same?(number)
            kinds.map { |kind| [kind, number] }
          end
        end
      end

      def same?(number) = @runs.flatten.all? { |run| run.own[number] == run.total[number] }

      def differences = @differences ||= tests.to_h { |kind, number| [[kind, number], noise.difference(kind, number)] }

      def noise = @noise ||= @between ? BetweenRuns.new(@runs, divisors) : WithinRun.new(@runs, tests.map(&:last).uniq)

      # [kind, number] → [p, the doubt of its Holm step].
      def decisions
        @decisions ||= begin
          ps = differences.values.map(&:p)
          differences.keys.zip(ps.zip(Statistics.holm(ps, alpha: 1 - @level))).to_h
        end
      end

      def tested_rows
        callers = Callers.new(@runs, divisors, @names)
        numbers = tests.map(&:last).uniq
        rows = numbers.map { |number| [number, row(number)] }
        rows.sort_by! { |_, row| [*row.own.rank.map(&:-@), -row.total.difference.point.abs, row.name, row.path] }
        rows.select { |_, row| row.changed? }.first(PATHS).each do |number, row|
          row.callers = callers.path(row.own.changed ? :own : :total, number)
        end
        rows.map(&:last)
      end

      def row(number)
        name = @names[number]
        own = delta(:own, number)
        total = same?(number) ? own : delta(:total, number)
        Row.new(name: name.name, path: name.path, kind: name.kind, lines: name.lines, own: own, total: total, callers: [])
      end

      def delta(kind, number)
        shares = @runs.map { |runs| Statistics.mean(runs.map { |run| run.public_send(kind)[number].fdiv(run.whole) }) }
        if (difference = differences[[kind, number]])
          p, doubt = decisions[[kind, number]]
          delta = Delta.new(difference.a, difference.b, *shares, difference.estimate(doubt, @runs.sum(&:size)), p, p <= doubt)
          return @per_iteration ? delta.tap { delta.lasting = delta.changed } : timed(delta, noise.time(kind, number), doubt)
        end

        a, b = @runs.zip(divisors).map { |runs, by| Statistics.mean(runs.zip(by).map { |run, divisor| run.public_send(kind)[number].fdiv(divisor) }) }
        Delta.new(a, b, *shares, Estimate.new(b - a, nil, nil, nil, @runs.sum(&:size)), nil, false)
      end

      def timed(delta, found, doubt)
        delta.times = [found.a, found.b]
        delta.time = found.estimate(doubt, @runs.sum(&:size))
        least = @between ? 0 : delta.times.max * ONE_RUN
        delta.lasting = delta.changed && (delta.time.low > least || delta.time.high < -least)
        delta
      end

      def detectable
        alpha = (1 - @level) / [tests.size, 1].max
        reaches = differences.filter_map do |(kind, _), difference|
          next unless kind == :own

          difference.reach(alpha) - Statistics.student_quantile(1 - POWER, difference.degrees) * difference.standard_error
        end
        reaches.max&./(@per_iteration ? means[0] : 1.0)
      end
    end
  end
end
