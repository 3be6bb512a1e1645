# frozen_string_literal: true

require "json"
require "open3"
require_relative "../../test/support/browser"
require_relative "../support/long_recording"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Page
    # How a user meets the page of a million samples: its size, the time from the address to the first picture, and the
    # frames a second of the flame graph while it zooms. The browser is a real Chromium without a graphics card. One
    # recording is real, one has stacks 500 deep.
    class Speed
      ROUNDS = 5
      DEEPEST = 500
      GOAL_MS = 3000
      GOAL_FRAMES = 30
      WINDOW_MS = 500
      # As `pitwall report` is run for its own benchmark.
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      private_constant :ROUNDS, :DEEPEST, :GOAL_MS, :GOAL_FRAMES, :WINDOW_MS, :COMMAND

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        absent = Browser.missing(install: !@context.quick?)
        absent = @context.absences.values.first if absent.nil? && @context.available(%w[pitwall_signal]).empty?
        return Result.new(tables: [], goals: goals([], 0), notes: [absent], data: {}) if absent

        LongRecording.new(@context).with do |recording, samples|
          cases = [measure("web-like loop", recording)]
          cases << deep unless @context.quick?
          Result.new(tables: [table(cases, samples)], goals: goals(cases, samples), notes: @context.notes,
                     data: { samples: samples, cases: cases })
        end
      end

      private

      # Three threads, 20,000 different stacks.
      def deep
        @context.scratch("deep") do |path|
          program = File.join(ROOT, "test/support/big_recording.rb")
          run!(RbConfig.ruby, program, path, LongRecording::SAMPLES.to_s, "20000", DEEPEST.to_s)
          measure("stacks up to #{DEEPEST} deep", path)
        end
      end

      def measure(name, recording)
        @context.scratch("page") do |scratch|
          html = "#{scratch}.html" # a browser goes by the name
          run!(RbConfig.ruby, *COMMAND, "report", recording, "--format", "html", "--out", html)
          rounds = Array.new(@context.rounds(ROUNDS)) do
            seen = Browser.run("page.mjs", "speed", html)
            raise Context::Failure, seen["complaints"].first if seen["complaints"].any?

            spans = { heavy: seen["heavy"]["spans"], time: seen["time"]["spans"], brush: seen["brush"] }
            { open_ms: seen["ready_ms"], frames: spans.transform_values { |found| slowest(found).round(1) } }
          end
          { name: name, recording_bytes: File.size(recording), page_bytes: File.size(html), rounds: rounds }
        ensure
          FileUtils.rm_f(html) if html
        end
      end

      # Frames a second in the slowest half second.
      def slowest(spans)
        spans.each_index.filter_map do |from|
          sum = 0
          upto = (from...spans.size).find { |at| (sum += spans[at]) >= WINDOW_MS } or next
          (upto - from + 1) / sum * 1000
        end.min || spans.size / spans.sum * 1000
      end

      def run!(*command)
        output, status = Open3.capture2e(*command)
        raise Context::Failure, output.lines.last unless status.success?
      end

      def table(cases, samples)
        Table.new("#{samples} samples; frames a second in the slowest half second",
                  ["recording", "kB", "page, kB", "opens in, ms (median)", "slowest", "zooming, heaviest first",
                   "zooming, time order", "brushing a range"],
                  cases.map do |one|
                    opened = one[:rounds].map { |round| round[:open_ms] }
                    [one[:name], one[:recording_bytes] / 1000, one[:page_bytes] / 1000,
                     Statistics.median(opened).round, opened.max,
                     *%i[heavy time brush].map { |kind| one[:rounds].map { |round| round[:frames][kind] }.min.round }]
                  end)
      end

      def goals(cases, samples)
        texts = ["the page of 1,000,000 samples opens in at most #{GOAL_MS} ms",
                 "and zooms at more than #{GOAL_FRAMES} frames/s",
                 "it is at most 1.5 times the recording and 400 kB"]
        return texts.map { |text| Goal.not_measured(text) } if cases.empty? || samples < LongRecording::SAMPLES

        opened = cases.map { |one| Statistics.median(one[:rounds].map { |round| round[:open_ms] }) }.max
        frames = cases.flat_map { |one| one[:rounds].flat_map { |round| round[:frames].values_at(:heavy, :time) } }.min
        size = cases.map { |one| (one[:page_bytes] - 400_000).fdiv(one[:recording_bytes]) }.max
        [Goal.new(texts[0], "#{opened.round} ms", opened <= GOAL_MS),
         Goal.new(texts[1], "#{frames.round} frames/s", frames > GOAL_FRAMES),
         Goal.new(texts[2], format("%.2f times and 400 kB", size), size <= 1.5)]
      end
    end
  end
end
