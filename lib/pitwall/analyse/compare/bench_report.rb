# frozen_string_literal: true

require "pitwall/analyse/compare/bench_cases"
require "pitwall/analyse/compare/bench_summary"
require "pitwall/analyse/compare/measurement_warnings"

module Pitwall
  module Analyse
    # Everything that views of `pitwall bench` show.
    #
    # name:      title: "benchmark/join.rb"; nil if the names of cases are enough
    # facts:     Hash of String → String, facts of its Ruby and code: {"ruby" => "ruby 3.4.11 (…)"}
    # summaries: Array of BenchSummary::Case, in the order of the file
    # effects:   Array of Effect between cases with `compare!`: base and side are names of cases, name is the group's
    # growths:   Array of Sweep
    # settings:  Hash of String → settings of the measurement
    # host:      Hash of String → facts of the host: "kernel", "cpu", "cores", "memory_bytes"
    # warnings:  Array of Warning
    # losses:    Hash of String → Integer, numbers of measurements that were not used
    # duration_ns: duration of the whole measurement
    # command:   String, the command line that repeats the measurement
    BenchReport = Struct.new(:name, :facts, :summaries, :effects, :growths, :settings, :host, :warnings, :losses,
                             :duration_ns, :command, keyword_init: true) do
      # The report of samples.
      # @param cases [Array<Record::Case>] in the order of their file; any objects with name, label, block, block_name,
      #   params and flags will do
      # @param readings state of the host during the measurement, for warnings
      # @param more fields that do not come from samples: name, facts, host, losses, duration_ns, command
      #: (
      #    Array[Record::Sample], cases: Array[untyped], ?settings: Hash[String, untyped],
      #    ?readings: Hash[String, untyped], **untyped
      #  ) -> BenchReport
      def self.of(samples, cases:, settings: {}, readings: {}, **more)
        parts = BenchCases.new(samples, cases, settings)
        new(summaries: parts.summaries, effects: parts.effects, growths: parts.growths, settings: settings,
            warnings: MeasurementWarnings.of(parts.samples, host: readings, settings: settings), **more)
      end

      # Cases that are compared with each other, fastest first: one list for each group.
      # @return [Array<[String, Array<BenchSummary::Ranked>]>] the group's title and its cases
      #: () -> Array[[String, Array[BenchSummary::Ranked]]]
      def rankings
        headline = effects.to_a.select { |effect| effect.metric == "wall" }
        headline.group_by { |effect| [effect.name, effect.base] }.map do |(title, base), group|
          names = [base, *group.map(&:side)]
          [title, BenchSummary.ranked(summaries.select { |one| names.include?(one.name) }, group)]
        end
      end

      # Counters of the VM's caches that the measured Ruby does not have.
      #: () -> Array[String]
      def not_counted = Record.stat_counters_missing(summaries.flat_map { |one| one[:values].keys }.uniq)
    end
  end
end
