# frozen_string_literal: true

require "stringio"
require_relative "../../script/checkout"
require_relative "../support/context"
require_relative "../support/result"
require_relative "../support/statistics"
require "pitwall/cli"
require "pitwall/history"

module Benchmarks
  module History
    # How long each view of a history of 100,000 results takes on SQLite: 500 cases with 200 results each, a tenth of
    # which have a step. The command runs in this process, so its start is not in the figures. The change points are
    # there already, as they are after `pitwall history add`.
    class Speed
      CASES = 500
      RESULTS = 200
      ROUNDS = 3
      MOST_S = 1.0
      VIEWS = [%w[show], %w[show --plot --limit 5], %w[show --mix-hosts],
               %w[changes], %w[changes --limit 500 --format markdown], ["show", "case 4"]].freeze
      # These print all 100,000 results.
      ALL = [%w[show --limit 500 --format json], %w[show --format html --out -], %w[export]].freeze
      private_constant :CASES, :RESULTS, :ROUNDS, :MOST_S, :VIEWS, :ALL

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        Checkout.use_vendored_gems
        @context.scratch("history-speed") do |file|
          path = "#{file}.sqlite3"
          filling = timed { fill(path) }
          rounds = Array.new(@context.rounds(ROUNDS)) do
            [*VIEWS, *ALL].to_h { |words| [words, timed { run(path, words) }] }
          end
          times = rounds.first.keys.to_h { |words| [words, Statistics.median(rounds.map { |round| round[words] })] }
          result(times, filling)
        ensure
          File.delete(path) if path && File.exist?(path)
        end
      end

      private

      def cases = @context.quick? ? 5 : CASES

      def fill(path)
        random = Random.new(1)
        Pitwall::History::Store.open(Pitwall::History::Address.parse(path), create: true) do |store|
          RESULTS.times.each_slice(20) { |numbers| store.add("speed", numbers.map { |number| one(number, random) }) }
          Pitwall::History::Analysis.update(store, "speed")
        end
      end

      def one(number, random)
        figures = Array.new(cases) do |kase|
          value = 1e6 * (0.98 + (random.rand * 0.04)) * ((kase % 10).zero? && number > 100 ? 1.05 : 1)
          Pitwall::History::Figure.new(suite: "", benchmark: "case #{kase}", variant: "", metric: "wall", unit: "ns",
                                       better: "lower", value: value)
        end
        Pitwall::History::Run.new(source: number.to_s, side: "", measured_at: at(number),
                                  host: { "cpu" => "x", "cores" => 2 }, commit_id: format("%040x", number),
                                  ruby: RUBY_DESCRIPTION, figures: figures)
      end

      def at(number) = Time.at(1_700_000_000 + (number * 3600)).utc.iso8601

      def run(path, words)
        err = StringIO.new
        argv = ["history", *words, "--store", path, "--project", "speed"]
        status = Pitwall::CLI.run(argv, out: StringIO.new, err: err)
        raise Context::Failure, err.string unless status.zero?
      end

      def timed
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        yield
        Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
      end

      def result(times, filling)
        rows = times.map { |words, seconds| ["history #{words.join(" ")}", format("%.2f", seconds)] }
        worst = times.slice(*VIEWS).values.max
        Result.new(tables: [Table.new("#{cases * RESULTS} results, seconds", %w[view seconds], rows)],
                   goals: [Goal.new("every view at most 1 s", format("%.2f s", worst), worst <= MOST_S)],
                   notes: ["the last three print every result, and are no views",
                           "saving and analysing all: #{format("%.1f", filling)} s"],
                   data: { times: times.transform_keys { |words| words.join(" ") }, filling: filling })
      end
    end
  end
end
