# frozen_string_literal: true

require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # Compares profiles of sides A and B: which methods' weight changed beyond noise.
    #
    # With three recordings or more on each side, the noise is the difference between recordings.
    # If the number of iterations is known, weights are then ns per iteration, so that growth of one method does not
    # make the others shrink. Otherwise weights are shares of the whole.
    # With fewer recordings, the noise is that of sampling within a recording (WithinRun), and weights are shares.
    # A share also changes if only the rest of the program changes. So each share also says whether the method's time
    # per recording changed beyond noise.
    #
    # Each method's self weight and total weight is a test. Holm's correction keeps the probability of *any* false alarm
    # below 1 − level. Only methods with at least LEAST of the whole of both sides together are tested.
    # This sum does not depend on the difference between the sides, so the choice does not bias the tests.
    class ProfileChange
      autoload :BetweenRuns, "pitwall/analyse/compare/profile_change/between_runs"
      autoload :Callers, "pitwall/analyse/compare/profile_change/callers"
      autoload :Names, "pitwall/analyse/compare/profile_change/names"
      autoload :Pair, "pitwall/analyse/compare/profile_change/pair"
      autoload :Run, "pitwall/analyse/compare/profile_change/run"
      autoload :WithinRun, "pitwall/analyse/compare/profile_change/within_run"

      # Smallest share of the whole for a method to be tested.
      LEAST = 0.0025
      # Fewest recordings on each side for the noise between them.
      RUNS = 3
      # Most changed methods whose callers are searched.
      PATHS = 10
      # Probability of detecting a change of `detectable`.
      POWER = 0.8
      # Assumed relative difference of a method's time between two recordings, if the noise between them is unknown.
      ONE_RUN = 0.03
      # A method with at least this share of the whole on both sides runs everything.
      EVERYTHING = 0.95
      private_constant :PATHS, :POWER

      # One side.
      #
      # recordings: for each recording its segments (Record::Recording#segments)
      # iterations: how often each recording ran the measured code (1 for a whole command); nil if unknown
      # base:       folder of the side's code; paths are compared relative to it
      Side = Struct.new(:recordings, :iterations, :base, keyword_init: true)

      # A weight on both sides, in the result's unit.
      #
      # a, b:       the weights; a_share, b_share: as shares of the whole
      # difference: Estimate of B − A. Its interval is that of its Holm step, so it excludes 0 exactly if changed.
      #             Low and high are nil if the weight was too small to be tested
      # p:          p-value; nil if not tested
      # times:      ns per recording on each side, if the unit is shares; else nil
      # time:       Estimate of their difference, if the unit is shares; else nil
      # lasting:    whether the time changed, not only the share
      Delta = Struct.new(:a, :b, :a_share, :b_share, :difference, :p, :changed, :times, :time, :lasting) do
        # Key for sorting: changed times before changed shares, large before small.
        #: () -> [Float, Float]
        def rank = [lasting && time ? time.point.abs : 0.0, difference.point.abs]
      end

      # A method.
      #
      # lines:   where it is defined on each side, 0 if unknown
      # own, total: Deltas of self and total weight
      # callers: the path through which most of the change came (Callers::Step):
      #          of the self weight if it changed, else of the total
      Row = Struct.new(:name, :path, :kind, :lines, :own, :total, :callers, keyword_init: true) do
        # Whether self or total weight changed.
        #: () -> bool
        def changed? = own.changed || total.changed

        # Whether almost everything runs in this method.
        #: () -> bool
        def everything? = [total.a_share, total.b_share].min >= EVERYTHING

        # :gone if B has no sample of it, :new if A has none, else :both.
        #: () -> Symbol
        def presence = total.b.zero? ? :gone : (total.a.zero? ? :new : :both)
      end

      # Result of a comparison.
      #
      # unit:       :iteration (weights are ns per iteration) or :share (weights are 0 to 1)
      # noise:      :between_runs or :within_run
      # runs:       number of recordings on each side
      # threads:    largest number of threads in a recording, whose times are summed up
      # wholes:     by side: weight of each recording, in ns
      # means:      by side: weight of one iteration, in ns; nil if iterations are unknown
      # rows:       methods, largest change of self weight first
      # tests:      number of tests
      # detectable: change of a self weight that is detected with a probability of 80%, as a share of the whole (of A's
      #             mean if the unit is ns); nil without tests
      # notes:      what makes the sides hard to compare
      # reason:     why nothing could be compared, else nil
      Result = Struct.new(:weight, :unit, :noise, :level, :runs, :threads, :wholes, :means, :rows, :tests, :detectable,
                          :notes, :reason, keyword_init: true) do
        # A result without a comparison, and the reason.
        #: (String) -> Result
        def self.refused(reason)
          new(weight: :cpu, unit: :share, noise: :between_runs, level: 0.95, runs: [0, 0], threads: 0,
              wholes: [[], []], means: [nil, nil], rows: [], tests: 0, notes: [], reason: reason)
        end

        # Methods whose self weight changed, largest change first. Those with only a changed share are last.
        #: () -> Array[Row]
        def changed = rows.select { |row| row.own.changed }

        # Methods whose total weight changed, but not their self weight.
        # Leaves out callers of methods in `changed`, and methods in which everything runs: their total is the whole.
        #: () -> Array[Row]
        def changed_below
          known = changed.flat_map { |row| row.callers.map { |step| [step.name, step.path] } }
          below = rows.select { |row| row.total.changed && !row.own.changed && !row.everything? }
          below.reject { |row| known.include?([row.name, row.path]) }
               .sort_by { |row| [*row.total.rank.map(&:-@), row.name] }
        end
      end

      # Means of both sides, and the standard error of their difference.
      Difference = Struct.new(:a, :b, :standard_error, :degrees) do
        # From two Statistics::Parts. The degrees of freedom are Welch's (Welch-Satterthwaite).
        def self.between(a, b)
          squares = [a, b].map { |part| part.standard_error**2 }
          shares = squares.zip([a, b]).sum { |square, part| square**2 / part.degrees }
          new(a.point, b.point, Math.sqrt(squares.sum), shares.zero? ? a.degrees + b.degrees : squares.sum**2 / shares)
        end

        def point = b - a

        # Two-sided p-value.
        def p
          return point.zero? ? 1.0 : 0.0 if standard_error.zero?

          2 * Statistics.student_cdf(-(point / standard_error).abs, degrees)
        end

        def reach(alpha) = -Statistics.student_quantile(alpha / 2, degrees) * standard_error

        def estimate(alpha, count) = Estimate.new(point, point - reach(alpha), point + reach(alpha), 1 - alpha, count)
      end
      private_constant :Difference

      # Compares two sides.
      # @param weight [Symbol] :wall or :cpu; :captures of recordings without times: then times are counts
      # @param within [Array<String>] names of methods: only code that runs inside them counts; empty: all code
      # @param labels [Hash{String => String}, nil] only samples with all of these labels count
      # @param level [Float] 1 − the probability of any false alarm
      #: (
      #    a: Side, b: Side, ?weight: Symbol, ?within: Array[String], ?labels: Hash[String, String]?, ?level: Float
      #  ) -> Result
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
          side.recordings.map do |segments|
            Run.new(segments, @names, at, weight: weight, within: within, labels: labels)
          end
        end
        @between = @runs.all? { |runs| runs.size >= RUNS }
        @iterations = sides.map(&:iterations)
        @per_iteration = @between && @iterations.all?
      end

      # The comparison's result.
      #: () -> Result
      def result
        reason = obstacle
        rows = reason ? [] : tested_rows
        Result.new(
          weight: @weight, unit: @per_iteration ? :iteration : :share, noise: @between ? :between_runs : :within_run,
          level: @level, runs: @runs.map(&:size), threads: @runs.flatten.map(&:threads).max || 0,
          wholes: @runs.map { |runs| runs.map(&:whole) }, means: means, rows: rows,
          tests: reason ? 0 : tests.size, detectable: reason ? nil : detectable, notes: notes, reason: reason
        )
      end

      private

      # Why nothing can be compared; nil if it can.
      def obstacle
        empty = @runs.index { |runs| runs.empty? || runs.any? { |run| run.whole.zero? } }
        "side #{%w[A B][empty]} has a recording without any sample of what is compared" if empty
      end

      # How the sides' Rubies walk stacks. If they differ, only one of them tells blocks from their methods.
      def walks = @headers.flatten.map(&:walk).uniq

      def notes
        notes = []
        if walks.size > 1
          notes << "one side's Ruby can't tell a block from its method: blocks count for their methods on both"
        end
        notes << "without times in the files, counts are compared, each as a sample of its own" if @weight == :captures
        modes = @headers.map { |headers| headers.map(&:mode).uniq }
        if modes[0] != modes[1]
          modes = modes.flatten.uniq.compact.join(", ")
          notes << "the sides were sampled in different modes (#{modes}), which see different methods"
        end
        notes
      end

      def means
        @runs.zip(@iterations).map do |runs, iterations|
          runs.sum(&:whole).fdiv(runs.size * iterations) if iterations && !runs.empty?
        end
      end

      # By side and run: the divisor that turns a weight into the result's unit.
      def divisors
        @divisors ||= @runs.zip(@iterations).map do |runs, iterations|
          runs.map { |run| @per_iteration ? iterations : run.whole }
        end
      end

      # The tests: [:own or :total, method's number]. A total that equals the self weight is not tested twice.
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

      def noise
        @noise ||= @between ? BetweenRuns.new(@runs, divisors) : WithinRun.new(@runs, tests.map(&:last).uniq)
      end

      # Test → [p, alpha of its Holm step].
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
        Row.new(name: name.name, path: name.path, kind: name.kind, lines: name.lines, own: own, total: total,
                callers: [])
      end

      def delta(kind, number)
        shares = @runs.map { |runs| Statistics.mean(runs.map { |run| run.public_send(kind)[number].fdiv(run.whole) }) }
        if (difference = differences[[kind, number]])
          p, alpha = decisions[[kind, number]]
          delta = Delta.new(difference.a, difference.b, *shares, difference.estimate(alpha, @runs.sum(&:size)), p,
                            p <= alpha)
          return delta.tap { delta.lasting = delta.changed } if @per_iteration

          return with_times(delta, noise.time(kind, number), alpha)
        end

        a, b = @runs.zip(divisors).map do |runs, by|
          Statistics.mean(runs.zip(by).map { |run, divisor| run.public_send(kind)[number].fdiv(divisor) })
        end
        Delta.new(a, b, *shares, Estimate.new(b - a, nil, nil, nil, @runs.sum(&:size)), nil, false)
      end

      def with_times(delta, difference, alpha)
        delta.times = [difference.a, difference.b]
        delta.time = difference.estimate(alpha, @runs.sum(&:size))
        least = @between ? 0 : delta.times.max * ONE_RUN
        delta.lasting = delta.changed && (delta.time.low > least || delta.time.high < -least)
        delta
      end

      def detectable
        alpha = (1 - @level) / [tests.size, 1].max
        reaches = differences.filter_map do |(kind, _), difference|
          next unless kind == :own

          power = -Statistics.student_quantile(1 - POWER, difference.degrees) * difference.standard_error
          difference.reach(alpha) + power
        end
        reaches.max&./(@per_iteration ? means[0] : 1.0)
      end
    end
  end
end
