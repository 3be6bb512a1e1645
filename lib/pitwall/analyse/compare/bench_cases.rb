# frozen_string_literal: true

require "pitwall/analyse/compare/bench_summary"
require "pitwall/analyse/compare/comparison"
require "pitwall/analyse/allocations/growth"
require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/statistics/statistics"
require "pitwall/analyse/compare/sweep"

module Pitwall
  module Analyse
    # Groups the samples of one or more benchmark files by case, and computes effects and growth between cases.
    # @api private
    class BenchCases
      # A case, the name that views show, and its samples under this name.
      Labelled = Struct.new(:case, :name, :samples)
      private_constant :Labelled

      # How cases grow on two sides, with the comparison of both.
      # @param cases of both sides, in the order of their file
      #: (Array[Record::Sample], Array[untyped], base: String, side: String) -> Array[Sweep]
      def self.between(samples, cases, base:, side:)
        before, after = [base, side].map do |name|
          new(samples.select { |sample| sample.side == name }, cases, {}).growths(separate: true)
        end
        after.filter_map do |sweep|
          own = before.find { |other| other.name == sweep.name } or next
          sweep.base, sweep.base_name, sweep.fit_name = own.fit, base, side
          sweep.against = Growth.against(own.fit, sweep.fit)
          sweep
        end
      end

      # @return [Array<Record::Sample>] each with the name that views show
      attr_reader :samples

      #: (Array[Record::Sample], Array[untyped], Hash[String, untyped]) -> void
      def initialize(samples, cases, settings)
        @settings = settings
        @cases = label(samples, cases)
        @samples = @cases.flat_map(&:samples)
      end

      # A summary of each case.
      #: () -> Array[BenchSummary::Case]
      def summaries = @summaries ||= BenchSummary.of(samples, names: @cases.map(&:name))

      # Effects between cases of one block with the same parameters, if the block has `compare!`. Each case is compared
      # with the baseline, or with the fastest case.
      #: () -> Array[Effect]
      def effects
        asking = @cases.select { |one| flag?(one, "compare") }
        groups = asking.group_by { |one| [one.samples.first.side, one.case.block, one.case.params] }.values
        groups.select { |group| group.size > 1 }.flat_map do |group|
          base = flag?(group.first, "baseline") ? group.first : group.min_by { |one| time(one) }
          compare(title(group.first), base, group - [base])
        end
      end

      # How cases grow along a parameter. The cases of a sweep are of one block and differ in nothing else.
      # If a block has two sweeps and `compare!`, the second is compared with the first.
      # @param separate [Boolean] true: sweeps are not compared
      #: (?separate: bool) -> Array[Sweep]
      def growths(separate: false)
        growing = @cases.select { |one| parameter(one) && number(one) }
        blocks = growing.group_by { |one| [one.samples.first.side, one.case.block, others(one)] }.values
        blocks.flat_map { |block| sweeps(block, separate) }
      end

      private

      # Adds the side to names that several files use.
      def label(samples, cases)
        groups = samples.group_by { |sample| [sample.name, sample.side] }
        sides = groups.keys.group_by(&:first).transform_values { |keys| keys.map(&:last) }
        seen = Hash.new(-1)
        cases.filter_map do |kase|
          side = sides.fetch(kase.name, [])[seen[kase.name] += 1] or next
          name = sides[kase.name].size > 1 ? "#{kase.name} (#{side})" : kase.name
          own = groups.fetch([kase.name, side]).map { |sample| sample.dup.tap { |copy| copy.name = name } }
          Labelled.new(kase, name, own)
        end
      end

      def flag?(one, flag) = one.case.flags.include?(flag)

      def time(one) = summaries.find { |summary| summary.name == one.name }&.time&.point || Float::INFINITY

      def title(one)
        [one.case.block_name.to_s, *one.case.params.map { |pair| pair.join("=") }].reject(&:empty?).join(" ")
      end

      def compare(title, base, others)
        samples = [base, *others].flat_map do |one|
          one.samples.map { |sample| sample.dup.tap { |copy| copy.name, copy.side = title, one.name } }
        end
        comparison = Comparison.new(**{ alpha: @settings["alpha"], margin: @settings["margin"] }.compact)
        comparison.effects(samples, base: base.name, sides: others.map(&:name))
      end

      def parameter(one) = one.case.flags.filter_map { |flag| flag[/\Agrowth:(.+)/, 1] }.first

      def number(one)
        value = Float(one.case.params[parameter(one)].to_s, exception: false)
        value && (value % 1).zero? ? value.to_i : value
      end

      def others(one) = one.case.params.reject { |name, _| name == parameter(one) }

      def sweeps(block, separate)
        sweeps = block.group_by { |one| one.case.label }.values.map { |group| sweep(group) }
        found = sweeps.select { |sweep| sweep.fit.points.size > 1 }
        return found if separate || found.size != 2 || !flag?(block.first, "compare")

        base, other = found
        other.base, other.base_name, other.fit_name = base.fit, base.name, other.name
        other.against = Growth.against(base.fit, other.fit, paired: paired?(base, other))
        other.name = title_of(block.first)
        [other]
      end

      def title_of(one) = one.case.block_name.to_s.empty? ? "time" : one.case.block_name

      def sweep(group)
        name = [group.first.case.label, *others(group.first).map { |pair| pair.join("=") }].join(" ")
        points = group.map { |one| { n: number(one), values: medians(one) } }
        Sweep.new(name: name, parameter: parameter(group.first), fit: Growth.fit(points))
      end

      # Sorted by block, because values of several cases in the same block belong together.
      def medians(one)
        one.samples.sort_by(&:block).filter_map { |sample| ProcessStatistic.of(sample, "wall") }
      end

      # Whether the n-th processes of both sweeps ran in the same block.
      def paired?(base, other)
        sizes = [base, other].map { |sweep| sweep.fit.points.to_h { |point| [point.n, point.values.size] } }
        (sizes[0].keys & sizes[1].keys).all? { |n| sizes[0][n] == sizes[1][n] }
      end
    end
  end
end
