# frozen_string_literal: true

require_relative "../support/pit_chunks"
require_relative "../support/result"

module Benchmarks
  module Sampler
    # What is left to do when the program is done: how long `stop` takes until the file is whole, and how large that
    # is. Peers are timed to the same point, their file written in the format that they write by default.
    class StopAndSize
      PROGRAMS = { "deep" => 20_000, "web_like" => 20 }.freeze # work between two looks at the clock
      CASES = %w[pitwall_signal stackprof_wall vernier pf2_wall].freeze
      INTERVAL_NS = 1_000_000
      SECONDS = 60
      GOAL_MS = 50
      GOAL_BYTES = 8
      private_constant :PROGRAMS, :CASES, :INTERVAL_NS, :SECONDS, :GOAL_MS, :GOAL_BYTES

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        runs = PROGRAMS.to_h do |program, amount|
          [program, @context.available(CASES).to_h { |name| [name, measure(program, amount, name)] }.compact]
        end
        Result.new(tables: runs.map { |program, cases| table(program, cases) },
                   goals: runs.flat_map { |program, cases| goals(program, cases) },
                   notes: @context.notes, data: { seconds: seconds, programs: runs })
      end

      private

      def seconds = @context.quick? ? 0.2 : SECONDS

      def measure(program, amount, name)
        @context.scratch("#{name}.json") do |out|
          @context.progress
          run = @context.child(profiler: name, measure: "once", program: program,
                               amount: @context.quick? ? 1 : amount, seconds: seconds, interval_ns: INTERVAL_NS,
                               out: out)
          next unless run

          tables, samples = name.start_with?("pitwall") ? PitChunks.split(out) : nil
          { ticks: run[:ticks], stop_ms: run[:stop][:wall_ns] / 1e6, start_ms: run[:start][:wall_ns] / 1e6,
            bytes: run[:bytes],
            table_bytes: tables, sample_bytes: samples }
        end
      end

      def table(program, cases)
        Table.new("#{program}, #{INTERVAL_NS / 1000} µs for #{seconds} s",
                  ["profiler", "samples", "start, ms", "stop and write, ms", "file, kB", "bytes a sample",
                   "of these tables", "without tables"],
                  cases.map { |name, run| row(name, run) })
      end

      def row(name, run)
        sizes = run.values_at(:bytes, :table_bytes, :sample_bytes)
        [name, run[:ticks], format("%.1f", run[:start_ms]), format("%.1f", run[:stop_ms]), run[:bytes] / 1000,
         *sizes.map { |bytes| bytes ? format("%.1f", bytes.fdiv(run[:ticks])) : "–" }]
      end

      def goals(program, cases)
        run = cases["pitwall_signal"] unless @context.quick?
        sample_bytes = run && run[:sample_bytes].fdiv(run[:ticks])
        figures = [
          ["stopping and writing #{SECONDS} s takes at most #{GOAL_MS} ms (#{program})",
           run && run[:stop_ms], GOAL_MS, "ms"],
          ["file at most #{GOAL_BYTES} bytes a sample plus its tables (#{program})", sample_bytes, GOAL_BYTES, "bytes"]
        ]
        figures.map do |text, figure, limit, unit|
          figure ? Goal.new(text, format("%.1f %s", figure, unit), figure <= limit) : Goal.not_measured(text)
        end
      end
    end
  end
end
