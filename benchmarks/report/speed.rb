# frozen_string_literal: true

require "fileutils"
require_relative "../support/clocks"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Report
    # How long a user waits for `pitwall report` of a long recording, and how much memory it takes: the whole command, from the
    # start of Ruby to the last line. The recording is a real one of the web-like loop at 10 kHz, kept in tmp/ for
    # the next time.
    class Speed
      SAMPLES = 1_000_000
      INTERVAL_NS = 100_000
      TRIAL_SECONDS = 4
      MARGIN = 1.1
      PROGRAM = File.join(ROOT, "benchmarks/programs/web_like.rb")
      ROUNDS = 7
      VIEWS = { "report" => [], "report --weight cpu" => %w[--weight cpu], "report --format json" => %w[--format json] }.freeze
      GOAL_MS = 1500
      GOAL_MB = 300
      # As script/pitwall does, without looking whether anything has to be built first.
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      PEAK_RSS = File.expand_path("../support/print_peak_rss", __dir__)
      private_constant :SAMPLES, :INTERVAL_NS, :TRIAL_SECONDS, :MARGIN, :PROGRAM, :ROUNDS, :VIEWS, :GOAL_MS, :GOAL_MB, :COMMAND, :PEAK_RSS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        return nothing if @context.available(%w[pitwall_signal]).empty?

        recording, samples = record
        runs = VIEWS.transform_values { |options| Array.new(@context.rounds(ROUNDS)) { report(recording, options) } }
        Result.new(tables: [table(runs, samples, File.size(recording))], goals: goals(runs.fetch("report"), samples), notes: @context.notes,
                   data: { samples: samples, bytes: File.size(recording), runs: runs })
      ensure
        FileUtils.rm_f(recording) if recording && @context.quick?
      end

      private

      def nothing
        Result.new(tables: [], goals: goals(nil, 0), notes: @context.notes, data: {})
      end

      # Returns the path and how many samples it holds. How long a million takes is found by trying, as this machine
      # may miss ticks at 10 kHz.
      def record
        path = File.join(ROOT, "tmp", "benchmarks", "#{@context.quick? ? "few" : "million"}-#{RUBY_VERSION}.pit")
        FileUtils.mkdir_p(File.dirname(path))
        return [path, sample(path, 0.2)] if @context.quick?
        return [path, Integer(File.read("#{path}.samples"))] if kept?(path)

        seconds = TRIAL_SECONDS
        samples = sample(path, seconds)
        while samples < SAMPLES
          seconds = (seconds * SAMPLES * MARGIN / samples).ceil
          samples = sample(path, seconds)
        end
        File.write("#{path}.samples", samples.to_s)
        [path, samples]
      end

      # A recording of another version of the program would have other stacks.
      def kept?(path) = File.exist?(path) && File.exist?("#{path}.samples") && File.mtime(path) > File.mtime(PROGRAM)

      def sample(path, seconds)
        run = @context.child(profiler: "pitwall_signal", measure: "once", program: "web_like", amount: 10, seconds: seconds,
                             interval_ns: INTERVAL_NS, out: path)
        run ? run[:ticks] : raise(Context::Failure, "no recording to report on")
      end

      def report(recording, options)
        reader, writer = IO.pipe
        spent = Clocks.spent do
          pid = spawn({ "BENCHMARKS_RSS_FD" => writer.fileno.to_s }, RbConfig.ruby, "-r", PEAK_RSS, *COMMAND, "report", recording, *options,
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
        Table.new("#{samples} samples, #{bytes / 1000} kB, web-like loop", ["command", "wall, ms (median)", "slowest", "peak RSS, MB"],
                  runs.map do |name, found|
                    walls = found.map { |run| run[:wall_ns] / 1e6 }
                    [name, Statistics.median(walls).round, walls.max.round, found.map { |run| run[:peak_kb] }.max / 1000]
                  end)
      end

      def goals(runs, samples)
        texts = ["report of 1,000,000 samples takes at most #{GOAL_MS} ms", "and at most #{GOAL_MB} MB"]
        return texts.map { |text| Goal.not_measured(text) } if runs.nil? || samples < SAMPLES

        wall = Statistics.median(runs.map { |run| run[:wall_ns] / 1e6 })
        peak = runs.map { |run| run[:peak_kb] / 1000.0 }.max
        [Goal.new(texts[0], "#{wall.round} ms", wall <= GOAL_MS), Goal.new(texts[1], "#{peak.round} MB", peak <= GOAL_MB)]
      end
    end
  end
end
