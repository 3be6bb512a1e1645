# frozen_string_literal: true

require "pitwall/analyse/compare/bench_cases"
require "pitwall/analyse/compare/bench_summary"
require "pitwall/analyse/compare/measurement_warnings"

module Pitwall
  module Analyse
    # All that a view of `pitwall bench` shows.
    #
    # name:      what was measured, for the title: "benchmark/join.rb"; nil where the cases say it
    # facts:     Hash of String → String, what is known of its Ruby and code: {"ruby" => "ruby 3.4.11 (…)"}
    # summaries: Array of BenchSummary::Case, in the order of the file
    # effects:   Array of Effect between cases that asked for it (`compare!`): base and side are names of cases, name is the group's
    # growths:   Array of Sweep
    # settings:  Hash of String → what the run was asked for
    # host:      Hash of String → what the host is: "kernel", "cpu", "cores", "memory_bytes"
    # warnings:  Array of Warning
    # losses:    Hash of String → Integer, what was measured but not used
    # duration_ns: of the whole measurement
    # command:   String, the command line that repeats it
    BenchReport = Struct.new(:name, :facts, :summaries, :effects, :growths, :settings, :host, :warnings, :losses, :duration_ns, :command,
                             keyword_init: true) do
      # All that samples say.
      # @param cases in the order of their file, answering name, label, block, block_name, params and flags: Record::Case
      # @param readings of the host while it measured, for the warnings
      # @param more fields that samples don't tell: name, facts, host, losses, duration_ns, command
      #: (Array[Record::Sample], cases: Array[untyped], ?settings: Hash[String, untyped], ?readings: Hash[String, untyped], **untyped) -> BenchReport
      def self.of(samples, cases:, settings: {}, readings: {}, **more)
        parts = BenchCases.new(samples, cases, settings)
        new(summaries: parts.summaries, effects: parts.effects, growths: parts.growths, settings: settings,
            warnings: MeasurementWarnings.of(parts.samples, host: readings, settings: settings), **more)
      end

      # Cases held against each other, the fastest first: one list a group.
      # @return [Array<[String, Array<BenchSummary::Ranked>]>] what the group is called, its cases
      #: () -> Array[[String, Array[BenchSummary::Ranked]]]
      def rankings
        headline = effects.to_a.select { |effect| effect.metric == "wall" }
        headline.group_by { |effect| [effect.name, effect.base] }.map do |(title, base), group|
          names = [base, *group.map(&:side)]
          [title, BenchSummary.ranked(summaries.select { |one| names.include?(one.name) }, group)]
        end
      end
    end
  end
end
