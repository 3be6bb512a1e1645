# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    class StructureChange
      # Which differences of sampled paths are beyond noise.
      #
      # Each path's time with what is below it is a test, as in ProfileChange: with three recordings or more on each
      # side the noise is that between recordings, else that of sampling within a recording. A path whose only weight
      # comes through one callee is the same test as that callee.
      class Doubt
        #: (Array[Array[PathRun]], Paths, level: Float) -> void
        def initialize(runs, paths, level:)
          @runs = runs
          @paths = paths
          @level = level
        end

        # By node: :beyond, :chance or :small.
        #: () -> Array[Symbol]
        def verdicts
          tested = tests
          wanted = tested.uniq - [nil]
          found = wanted.zip(decisions(wanted)).to_h
          tested.map { |node| node ? found.fetch(node) : :small }
        end

        private

        def between? = @runs.all? { |runs| runs.size >= ProfileChange::RUNS }

        # By node: the node whose test decides; nil if the path is too small.
        def tests
          runs = @runs.flatten
          least = runs.sum(&:whole) * ProfileChange::LEAST
          totals = runs.map(&:total)
          tested = Array.new(@paths.size)
          @paths.parents.each_with_index do |parent, node|
            next if totals.sum { |total| total[node] } < least

            same = node.positive? && totals.all? { |total| total[node] == total[parent] }
            tested[node] = same ? tested[parent] : node
          end
          tested
        end

        def decisions(nodes)
          noise = noise(nodes)
          differences = nodes.map { |node| noise.time(:total, node) }
          alphas = Statistics.holm(differences.map(&:p), alpha: 1 - @level)
          differences.zip(alphas).map do |difference, alpha|
            interval = difference.estimate(alpha, 1)
            least = between? ? 0 : [difference.a, difference.b].max * ProfileChange::ONE_RUN
            difference.p <= alpha && (interval.low > least || interval.high < -least) ? :beyond : :chance
          end
        end

        def noise(nodes)
          return ProfileChange::BetweenRuns.new(@runs, @runs.map { |runs| runs.map { 1 } }) if between?

          ProfileChange::WithinRun.new(@runs, nodes, parents: @paths.parents)
        end
      end
    end
  end
end
