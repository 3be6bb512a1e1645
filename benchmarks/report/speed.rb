# frozen_string_literal: true

require_relative "../support/clocks"
require_relative "../support/deep_recording"
require_relative "../support/long_recording"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Report
    # How long `pitwall report` of a long recording takes, and how much memory. The time is of the whole command, from
    # the start of Ruby to the last line. The first recording is a real one. The second has native frames and stacks of
    # 200 frames.
    class Speed
      ROUNDS = 7
      VIEWS = { "report" => [], "report --weight cpu" => %w[--weight cpu],
                "report --format json" => %w[--format json] }.freeze
      DEEP_VIEWS = { "report" => [], "report --native" => %w[--native], "report --tree --native" => %w[--tree --native],
                     "report --view graph" => %w[--view graph],
                     "report --view graph --native" => %w[--view graph --native],
                     "report --view graph --object libobject1.so --min 1%" =>
                       %w[--view graph --object libobject1.so --min 1%],
                     "report --native --blackbox function_7" => %w[--native --blackbox function_7],
                     "report --native --focus Class7#method_7" => %w[--native --focus Class7#method_7] }.freeze
      GOAL_DEEP_MS = 2000
      GOAL_MS = 1500
      GOAL_MB = 300
      # As script/pitwall does, without looking whether anything has to be built first.
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      PEAK_RSS = File.expand_path("../support/print_peak_rss", __dir__)
      private_constant :ROUNDS, :VIEWS, :DEEP_VIEWS, :GOAL_DEEP_MS, :GOAL_MS, :GOAL_MB, :COMMAND, :PEAK_RSS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        return nothing if @context.available(%w[pitwall_signal]).empty?

        runs = LongRecording.new(@context).with { |*recording| measured(recording, VIEWS) }
        deep = DeepRecording.new(@context).with { |*recording| measured(recording, DEEP_VIEWS) }
        Result.new(tables: [table(runs, "web-like loop"),
                            table(deep, "stacks of #{DeepRecording::DEPTH} Ruby and native frames")],
                   goals: goals(runs[:runs].fetch("report"), runs[:samples]) + deep_goals(deep),
                   notes: @context.notes, data: { **runs, deep: deep })
      end

      private

      def nothing
        Result.new(tables: [], goals: goals(nil, 0), notes: @context.notes, data: {})
      end

      # @param recording [Array] path, number of samples
      def measured((path, samples), views)
        { samples: samples, bytes: File.size(path),
          runs: views.transform_values { |options| Array.new(@context.rounds(ROUNDS)) { report(path, options) } } }
      end

      def deep_goals(deep)
        deep[:runs].map do |name, found|
          text = "#{name} of 1,000,000 samples of #{DeepRecording::DEPTH} frames takes at most #{GOAL_DEEP_MS} ms"
          next Goal.not_measured(text) if deep[:samples] < DeepRecording::SAMPLES

          wall = Statistics.median(found.map { |run| run[:wall_ns] / 1e6 })
          Goal.new(text, "#{wall.round} ms", wall <= GOAL_DEEP_MS)
        end
      end

      def report(recording, options)
        reader, writer = IO.pipe
        before = Clocks.children_cpu_ns
        spent = Clocks.spent do
          environment = { "BENCHMARKS_RSS_FD" => writer.fileno.to_s }
          pid = spawn(environment, RbConfig.ruby, "-r", PEAK_RSS, *COMMAND, "report", recording, *options,
                      writer => writer, out: File::NULL)
          writer.close
          Process.wait(pid)
        end
        raise Context::Failure, "pitwall report failed: #{$?}" unless $?.success?

        { wall_ns: spent[:wall_ns], cpu_ns: Clocks.children_cpu_ns - before, peak_kb: Integer(reader.read) }
      ensure
        reader&.close
      end

      def table(measured, what)
        Table.new("#{measured[:samples]} samples, #{measured[:bytes] / 1000} kB, #{what}",
                  ["command", "wall, ms (median)", "slowest", "CPU, ms (median)", "peak RSS, MB"],
                  measured[:runs].map do |name, found|
                    walls, cpus = %i[wall_ns cpu_ns].map { |clock| found.map { |run| run[clock] / 1e6 } }
                    peak_kb = found.map { |run| run[:peak_kb] }.max
                    [name, Statistics.median(walls).round, walls.max.round, Statistics.median(cpus).round,
                     peak_kb / 1000]
                  end)
      end

      def goals(runs, samples)
        texts = ["report of 1,000,000 samples takes at most #{GOAL_MS} ms", "and at most #{GOAL_MB} MB"]
        return texts.map { |text| Goal.not_measured(text) } if runs.nil? || samples < LongRecording::SAMPLES

        wall = Statistics.median(runs.map { |run| run[:wall_ns] / 1e6 })
        peak = runs.map { |run| run[:peak_kb] / 1000.0 }.max
        [Goal.new(texts[0], "#{wall.round} ms", wall <= GOAL_MS),
         Goal.new(texts[1], "#{peak.round} MB", peak <= GOAL_MB)]
      end
    end
  end
end
