# frozen_string_literal: true

require "tmpdir"
require "pitwall/launch/target_environment"
require_relative "../support/context"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/statistics"

module Benchmarks
  module Boot
    # What `pitwall boot` costs the start of a Rails application, in turns with the start alone.
    class Cost
      SHOP = File.join(ROOT, "examples/shop")
      ROUNDS = 15
      MOST = 1.15
      WAYS = { "plain" => nil, "boot" => { "boot.on": 1 } }.freeze
      private_constant :SHOP, :ROUNDS, :MOST, :WAYS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        unless prepared?
          notes = ["examples/shop has no gems installed (script/demo does that)"]
          return Result.new(tables: [table([])], goals: [Goal.not_measured(goal_text)], notes: notes, data: {})
        end

        rounds = Rounds.take(@context, WAYS.keys, @context.rounds(ROUNDS)) { |name| boot(WAYS.fetch(name)) }
        Result.new(tables: [table(rounds)], goals: [goal(rounds)], notes: [], data: { "rounds" => rounds })
      end

      private

      def environment
        { "BUNDLE_PATH" => File.join(ROOT, "vendor/shop"), "BUNDLE_APP_CONFIG" => File.join(ROOT, "tmp/shop-bundle"),
          "BUNDLE_GEMFILE" => nil, "RUBYOPT" => nil, "RUBYLIB" => nil,
          "BUNDLE_SILENCE_ROOT_WARNING" => "1", "SHOP_TMP" => File.join(ROOT, "tmp/shop") }
      end

      def prepared?
        system(environment, RbConfig.ruby, File.join(SHOP, "bin/bundle"), "check", out: File::NULL, err: File::NULL)
      end

      # CPU time of the process, ns: other programs change it less than wall time.
      def boot(way)
        Dir.mktmpdir("pitwall-boot") do |folder|
          recorded = {}
          if way
            bootstrap = File.join(ROOT, "lib/pitwall/collect/bootstrap.rb")
            recorded = Pitwall::Launch::TargetEnvironment.new(parts: folder, options: { mode: "none", **way },
                                                              bootstrap: bootstrap).to_h({})
          end
          before = Process.times
          words = [RbConfig.ruby, File.join(SHOP, "bin/rails"), "runner", "1"]
          unless system(environment.merge(recorded), *words, out: File::NULL)
            raise Context::Failure, "#{words.join(" ")} failed"
          end
          after = Process.times
          ((after.cutime + after.cstime - before.cutime - before.cstime) * 1e9).round
        end
      end

      def ratio(rounds)
        logs = rounds.map { |round| Math.log(round["boot"].fdiv(round["plain"])) }
        Statistics.estimate(logs).map { |log| Math.exp(log) }
      end

      def table(rounds)
        rows = WAYS.keys.reject { rounds.empty? }.map do |name|
          seconds = Statistics.median(rounds.map { |round| round[name] }) / 1e9
          [name, format("%.2f", seconds), name == "plain" ? "1" : show(ratio(rounds))]
        end
        Table.new("bin/rails runner 1, s of CPU time (ratio with its 95% interval)", %w[way seconds ratio], rows)
      end

      def goal_text = "a recorded boot takes at most #{MOST} of a plain one"

      def goal(rounds)
        estimate = ratio(rounds)
        return Goal.not_measured(goal_text) unless estimate.high&.finite?

        Goal.at_most(goal_text, show(estimate), estimate, MOST)
      end

      def show(estimate)
        return format("%.3f", estimate.point) unless estimate.high&.finite?

        format("%.3f (%.3f … %.3f)", estimate.point, estimate.low, estimate.high)
      end
    end
  end
end
