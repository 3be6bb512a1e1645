# frozen_string_literal: true

require "etc"
require "open3"
require "time"
require_relative "../support/error_log"
require_relative "../support/resampling"
require_relative "../support/result"
require_relative "../support/verdicts"

module Benchmarks
  module Compare
    # How often `pitwall compare` reports a change where there is none, how often and how soon it finds a real change,
    # and whether its intervals hold the truth. The sides are identical (A/A) or have a planted difference, and are
    # judged at the defaults. The same pairs are given to benchmark-ips and hyperfine in the same runs.
    #
    # Every run is appended to runs/compare-error-rates.jsonl and the tables add up all runs, so that days of short
    # calls make one proof: `--runs N` or `--minutes N` adds runs, `--runs 0` only prints the tables. The next case is
    # drawn among the cases with the smallest part of their share, so any number of runs is balanced. The same procedure
    # also runs on the recorded traces (support/resampling.rb).
    class ErrorRates
      # What is planted, for how long one may look for it, and how many of these there are in a round.
      Cell = Struct.new(:name, :planted, :budget, :weight, :max_blocks, keyword_init: true) do
        def title = planted.zero? ? "A/A" : format("+%g%%", planted * 100)
      end
      CELLS = [
        ["method_1ms", 0.0, 15, 3], ["method_1ms", 0.02, 15, 1], ["method_1ms", 0.01, 30, 1],
        ["command_150ms", 0.0, 30, 3], ["command_150ms", 0.02, 30, 1],
        ["gc_5ms", 0.0, 60, 3], ["gc_5ms", 0.02, 60, 1], ["objects_1ms", 0.005, 15, 1, 1]
      ].map do |name, planted, budget, weight, blocks|
        Cell.new(name: name, planted: planted, budget: budget, weight: weight, max_blocks: blocks)
      end.freeze
      QUICK = [["method_1ms", 0.02], ["command_150ms", 0.0], ["gc_5ms", 0.0], ["objects_1ms", 0.005]].freeze
      PEERS = [Verdicts::BenchmarkIps, Verdicts::Hyperfine].freeze
      # Issue 4: at most, or at least, so many of the runs; and how many runs a claim takes.
      FALSE_ALARMS = 0.02
      FOUND = { ["method_1ms", 0.02] => 0.99, ["command_150ms", 0.02] => 0.95, ["gc_5ms", 0.02] => 0.9,
                ["method_1ms", 0.01] => 0.85 }.freeze
      COVERED = 0.97 # of 99% intervals
      MARGIN = 0.01 # where nobody says otherwise
      VERDICTS = %i[slower faster same undecided].freeze
      RUNS = { identical: 60, planted: 20 }.freeze
      REPLICATIONS = 500
      HYPERFINE_NOTE = "hyperfine has no verdict of its own; here: slower or faster where 1 is not within its ±"
      private_constant :Cell, :CELLS, :QUICK, :PEERS, :FALSE_ALARMS, :FOUND, :COVERED, :MARGIN, :VERDICTS, :RUNS,
                       :REPLICATIONS, :HYPERFINE_NOTE

      def initialize(context)
        @context = context
        @log = ErrorLog.new
        @random = Random.new
        @cells = CELLS.select { |cell| context.chosen(Planted::CASES.keys).include?(cell.name) }
        @ours = Verdicts::Pitwall.new(context)
        @peers, @missing = PEERS.map { |peer| peer.new(context) }.partition { |peer| peer.missing.nil? }
      end

      #: () -> Result
      def call
        lines = @context.quick? ? quick : live
        Result.new(tables: [table(lines), peers_table(lines), *traces_table].compact, goals: goals, notes: notes(lines),
                   data: { live: lines.size, log: File.basename(ErrorLog::PATH), traces: @resampled })
      end

      private

      def quick
        QUICK.filter_map { |key| @cells.find { |cell| [cell.name, cell.planted] == key } }
             .flat_map { |cell| run(cell, max_blocks: 1) }
      end

      def live
        wanted = @context.runs || @cells.sum(&:weight)
        deadline = @context.minutes && (clock + (@context.minutes * 60))
        wanted.times do
          break if deadline && clock > deadline

          run(next_cell, &@log.method(:append))
          @context.progress
        end
        @context.progress("\n")
        @log.lines
      end

      # By how much of its share a cell has had; chance decides between equals.
      def next_cell
        own = @log.lines.select { |line| line["tool"] == Verdicts::Pitwall::NAME }
        counts = own.map { |line| line.values_at("case", "planted") }.tally
        @cells.min_by { |cell| [counts.fetch([cell.name, cell.planted], 0).fdiv(cell.weight), @random.rand] }
      end

      # One pair of sides, by every tool that can measure it, in random order. Yields each line as soon as there is one.
      def run(cell, max_blocks: cell.max_blocks)
        planted = Planted::CASES.fetch(cell.name)
        truth = planted.planted(cell.planted)
        tools = [@ours, *@peers.select { |peer| peer.measures?(planted) }].shuffle(random: @random)
        tools.map do |tool|
          seed = @random.rand(1_000_000)
          started = clock
          said = tool.call(planted, cell.planted, budget: cell.budget, seed: seed, max_blocks: max_blocks)
          line = { at: Time.now.utc.iso8601, tool: tool.class::NAME, case: cell.name, planted: cell.planted,
                   truth: truth.round(6), budget: cell.budget, **said, seconds: (clock - started).round(2), seed: seed,
                   ruby: RUBY_VERSION, cores: Etc.nprocessors, commit: commit }
          yield line if block_given?
          JSON.parse(JSON.generate(line))
        end
      end

      # Which version was judged; + where the working tree has changes.
      def commit
        @commit ||= begin
          git = lambda do |*words|
            text, status = Open3.capture2e("git", "-C", ROOT, *words)
            status.success? ? text.strip : ""
          end
          "#{git["rev-parse", "--short", "HEAD"]}#{"+" unless git["status", "--porcelain", "--", "lib"].empty?}"
        rescue Errno::ENOENT
          ""
        end
      end

      def tally(lines, tool, cell)
        key = [tool, cell.name, cell.planted]
        ErrorLog::Tally.new(lines.select { |line| line.values_at("tool", "case", "planted") == key })
      end

      def table(lines)
        rows = @cells.filter_map do |cell|
          found = tally(lines, Verdicts::Pitwall::NAME, cell)
          next if found.runs.zero?

          counts = cell.max_blocks
          [cell.name, cell.title, counts ? "one pair" : "#{cell.budget} s", found.runs,
           counts ? "#{found.counted} by objects" : found.rate("slower"),
           *%w[faster same undecided].map { |verdict| found.rate(verdict).hits },
           *[0.5, 0.9].map { |share| quantile(found.seconds, share) },
           counts ? "–" : found.covered, found.busy]
        end
        Table.new("pitwall compare, live, α 1%, margin 1% (95% intervals of rates by Clopper and Pearson)",
                  ["case", "planted", "budget", "runs", "slower", "faster", "same", "undecided", "seconds: median",
                   "90%", "99% interval held the truth", "busy host"], rows)
      end

      def peers_table(lines)
        rows = @cells.product(PEERS).filter_map do |cell, peer|
          found = tally(lines, peer::NAME, cell)
          next if found.runs.zero?

          verdicts = %w[slower faster same].map { |verdict| found.rate(verdict) }
          [peer::NAME, cell.name, cell.title, found.runs, *verdicts, quantile(found.seconds, 0.5)]
        end
        return if rows.empty?

        headings = ["tool", "case", "planted", "runs", "slower", "faster", "same", "seconds"]
        Table.new("the same pairs by others", headings, rows)
      end

      def quantile(seconds, share) = format("%.1f", Pitwall::Analyse::Statistics.quantile(seconds, share))

      def traces_table
        count = @context.quick? ? 1 : REPLICATIONS
        traces = Trace.all.select { |trace| @cells.any? { |cell| cell.name == trace.planted } }
        @resampled = traces.product(@cells).filter_map do |trace, cell|
          resample(trace, cell, count) if cell.name == trace.planted
        end
        return [] if @resampled.empty?

        rows = @resampled.map do |row|
          covered = row.values_at(:covered99, :covered95).map { |share| percent(share) }
          [*row.values_at(:case, :load, :planted, :pairs, *VERDICTS), *covered]
        end
        [Table.new("the same procedure on recorded traces, #{count} comparisons each",
                   ["case", "load", "planted", "pairs in the budget", "slower", "faster", "same", "undecided",
                    "99% intervals held the truth", "95%"], rows)]
      end

      def resample(trace, cell, count)
        outcomes, wider = [0.01, 0.05].map do |alpha|
          Resampling.new(trace, seconds: cell.budget, planted: cell.planted, alpha: alpha).outcomes(count)
        end
        verdicts = outcomes.map(&:verdict).tally
        { case: trace.planted, load: trace.load, planted: cell.title, pairs: trace.pairs_in(cell.budget),
          **VERDICTS.to_h { |verdict| [verdict, verdicts.fetch(verdict, 0)] },
          covered99: outcomes.count(&:covered?).fdiv(count), covered95: wider.count(&:covered?).fdiv(count) }
      end

      def goals
        return [] if @context.quick?

        lines = @log.lines
        found = @cells.to_h { |cell| [cell, tally(lines, Verdicts::Pitwall::NAME, cell)] }
        counted, timed = found.partition { |cell, _| cell.max_blocks }.map(&:to_h)
        [*timed.map { |cell, tally| cell.planted.zero? ? false_alarms(cell, tally) : power(cell, tally) },
         goal("99% intervals hold the truth in 97% or more (all)", sum(timed.values.map(&:covered)),
              at_least: COVERED, runs: RUNS.values.sum),
         goal("twice the margin is never called the same",
              sum(timed.filter_map { |cell, tally| tally.rate("same") if cell.planted >= 2 * MARGIN }),
              at_most: 0.0, runs: RUNS[:planted]),
         *counted.map do |cell, tally|
           goal("#{cell.title} of allocations found by counts in one pair", tally.counted, at_least: 1.0, runs: 1)
         end]
      end

      def false_alarms(cell, tally)
        goal("A/A false alarms at most #{percent(FALSE_ALARMS)} (#{cell.name})", tally.rate("slower", "faster"),
             at_most: FALSE_ALARMS, runs: RUNS[:identical])
      end

      def power(cell, tally)
        least = FOUND.fetch([cell.name, cell.planted])
        text = "#{cell.title} found in at least #{percent(least)} within #{cell.budget} s (#{cell.name})"
        goal(text, tally.rate("slower"), at_least: least, runs: RUNS[:planted])
      end

      def percent(share) = format("%.4g%%", share * 100)

      def sum(rates) = ErrorLog::Rate.new(rates.sum(&:hits), rates.sum(&:runs))

      # Missed only where there are runs enough and the rate's own interval says so.
      def goal(text, rate, runs:, at_most: 1.0, at_least: 0.0)
        return Goal.not_measured(text) if rate.runs.zero?

        low, high = rate.interval
        met = true if rate.runs >= runs && rate.share.between?(at_least, at_most)
        met = false if rate.runs >= runs && (low > at_most || high < at_least)
        Goal.new(text, rate.to_s, met)
      end

      def notes(lines)
        hosts = lines.select { |line| line["tool"] == Verdicts::Pitwall::NAME }
        [*@missing.map { |peer| "#{peer.class::NAME}: #{peer.missing}" },
         (HYPERFINE_NOTE if lines.any? { |line| line["tool"] == "hyperfine" }),
         (commits_note(hosts) if hosts.any? && !@context.quick?),
         *Trace.all.map { |trace| trace_note(trace) }].compact
      end

      def commits_note(lines)
        counts = lines.map { |line| line["commit"] }.tally
        "commits: #{counts.map { |name, count| "#{name} (#{count})" }.join(", ")}"
      end

      def trace_note(trace)
        head = trace.head
        others = (head.dig("readings", "others").to_f * 100).round
        "trace #{trace.name}: #{trace.pairs.size} pairs of #{head["block_ns"] / 1_000_000} ms, " \
          "#{head["date"][0, 10]}, others used #{others}% of the machine"
      end

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
