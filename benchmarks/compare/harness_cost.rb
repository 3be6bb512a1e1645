# frozen_string_literal: true

require "open3"
require_relative "../support/planted"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/statistics"

module Benchmarks
  module Compare
    # What the loop around a case costs an iteration. An empty case runs as a block and as code, by Pitwall's child and
    # by benchmark-ips, each in fresh processes in turns. Both take the time of many iterations at once. The time of an
    # empty iteration is the time of the loop.
    class HarnessCost
      ROUNDS = 15
      TOOLS = %w[pitwall benchmark-ips].freeze
      CASES = %w[block code].freeze
      FILE = File.expand_path("../programs/planted/empty.rb", __dir__)
      private_constant :ROUNDS, :TOOLS, :CASES, :FILE

      def initialize(context)
        @context = context
        @missing = context.peers.missing("benchmark-ips")
      end

      #: () -> Result
      def call
        names = @missing ? TOOLS.first(1) : TOOLS
        rounds = Rounds.take(@context, names, @context.rounds(ROUNDS)) do |name|
          name == "pitwall" ? pitwall : benchmark_ips
        end
        Result.new(tables: [table(rounds, names)], goals: CASES.map { |name| goal(name, rounds) },
                   notes: @missing ? ["benchmark-ips: #{@missing}"] : [], data: { rounds: rounds })
      end

      private

      # { "block" => ns an iteration, "code" => … }
      def pitwall
        measurer.cases.to_h do |kase|
          sample = measurer.sample(kase, calibrations[kase.name] ||= measurer.calibrate(kase), block: 0, order: 0)
          [kase.name, Statistics.median(sample["wall"])]
        end
      end

      def calibrations = @calibrations ||= {}

      # Not held to one core, as benchmark-ips isn't.
      def measurer
        @measurer ||= begin
          subject = ::Pitwall::Bench::Subject.new(name: "", ruby: [RbConfig.ruby], env: {}, dir: ROOT, script: FILE,
                                                  requires: [], facts: {})
          ::Pitwall::Experiment::Measurers.for(subject, Planted.settings(budget: 0, seed: 1, pin: false))
        end
      end

      def benchmark_ips
        paths = @context.peers.paths("benchmark-ips").flat_map { |path| ["-I", path] }
        environment = { "EMPTY_SECONDS" => (@context.quick? ? "0.1" : "1") }
        output, status = Open3.capture2(environment, RbConfig.ruby, *paths, "-r", "benchmark/ips", FILE)
        raise Context::Failure, "benchmark-ips failed" unless status.success?

        output.lines.to_h { |line| line.split.then { |name, ns| [name, Float(ns)] } }
      end

      def table(rounds, names)
        rows = CASES.map do |name|
          times = names.map { |tool| format("%.1f", Statistics.median(rounds.map { |round| round[tool][name] })) }
          [name, *times, *(show(ratio(name, rounds)) unless @missing)]
        end
        Table.new("an empty iteration, ns (#{rounds.size} rounds; 95% interval)",
                  ["case", *names, *("pitwall / benchmark-ips" unless @missing)], rows)
      end

      def ratio(name, rounds)
        Statistics.ratio(rounds.map { |round| round["pitwall"][name] / round["benchmark-ips"][name] })
      end

      def show(estimate) = format("%.3f (%.3f … %.3f)", estimate.point, estimate.low, estimate.high)

      def goal(name, rounds)
        text = "an empty #{name} costs at most what it does under benchmark-ips"
        return Goal.not_measured(text) if @missing || @context.quick?

        found = ratio(name, rounds)
        Goal.at_most(text, show(found), found, 1)
      end
    end
  end
end
