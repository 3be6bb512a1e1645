# frozen_string_literal: true

require_relative "../support/clocks"
require_relative "../support/long_recording"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Report
    # How long `pitwall report` of a long recording takes, and how much memory. The time is of the whole command, from
    # the start of Ruby to the last line. The recording is a real one.
    class Speed
      ROUNDS = 7
      VIEWS = { "report" => [], "report --weight cpu" => %w[--weight cpu],
                "report --format json" => %w[--format json] }.freeze
      GOAL_MS = 1500
      GOAL_MB = 300
      # As script/pitwall does, without looking whether anything has to be built first.
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      PEAK_RSS = File.expand_path("../support/print_peak_rss", __dir__)
      private_constant :ROUNDS, :VIEWS, :GOAL_MS, :GOAL_MB, :COMMAND, :PEAK_RSS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        return nothing if @context.available(%w[pitwall_signal]).empty?

        LongRecording.new(@context).with do |recording, samples|
          runs = VIEWS.transform_values { |options| Array.new(@context.rounds(ROUNDS)) { report(recording, options) } }
          Result.new(tables: [table(runs, samples, File.size(recording))],
                     goals: goals(runs.fetch("report"), samples), notes: @context.notes,
                     data: { samples: samples, bytes: File.size(recording), runs: runs })
        end
      end

      private

      def nothing
        Result.new(tables: [], goals: goals(nil, 0), notes: @context.notes, data: {})
      end

      def report(recording, options)
        reader, writer = IO.pipe
        spent = Clocks.spent do
          environment = { "BENCHMARKS_RSS_FD" => writer.fileno.to_s }
          pid = spawn(environment, RbConfig.ruby, "-r", PEAK_RSS, *COMMAND, "report", recording, *options,
                      writer => writer, out: File::NULL)
          writer.close
          Process.wait(pid)
        end
        raise Context::Failure, "pitwall report failed: #{$?}" unless $?.success?

        { wall_ns: spent[:wall_ns], peak_kb: Integer(reader.read) }
      ensure
        reader&.close
      end

      def table(runs, samples, bytes)
        Table.new("#{samples} samples, #{bytes / 1000} kB, web-like loop",
                  ["command", "wall, ms (median)", "slowest", "peak RSS, MB"],
                  runs.map do |name, found|
                    walls = found.map { |run| run[:wall_ns] / 1e6 }
                    peak_kb = found.map { |run| run[:peak_kb] }.max
                    [name, Statistics.median(walls).round, walls.max.round, peak_kb / 1000]
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
