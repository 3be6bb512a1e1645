# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "../support/context"
require_relative "../support/result"
require_relative "../support/scratch_repository"

module Benchmarks
  module Compare
    # Gates and `--each` on real processes, where compare/commits simulates them. A repository has a method that counts
    # to 30,000. A change without effect renames its variable, a slower one counts 3% further. Each gate is a whole
    # `pitwall compare --fail-if`, with its second run. Each `--each` looks for the slower one of ten commits.
    class Live
      GATES = 20 # each way
      SEARCHES = 3
      GATE_BUDGET_S = 20
      EACH_BUDGET_S = 20
      COMMITS = 10
      COUNT = 30_000
      MOST_S = 300 # of a search
      BENCH = "require_relative \"lib/work\"\nPitwall.bench { |x| x.report(\"count\") { Work.count } }\n"
      FAILED = 1
      UNDECIDED = 3
      private_constant :GATES, :SEARCHES, :GATE_BUDGET_S, :EACH_BUDGET_S, :COMMITS, :COUNT, :MOST_S, :BENCH, :FAILED,
                       :UNDECIDED

      #: (Context) -> void
      def initialize(context)
        @context = context
        @random = Random.new(1)
      end

      #: () -> Result
      def call
        return nothing if @context.quick?

        gates = { "no effect" => 1.0, "3% slower" => 1.03 }.transform_values do |factor|
          Array.new(@context.rounds(GATES)) { gate(factor).tap { @context.progress } }
        end
        searches = Array.new([SEARCHES, @context.rounds(SEARCHES)].min) { search.tap { @context.progress } }
        Result.new(tables: [gates_table(gates), searches_table(searches)], goals: goals(gates, searches), notes: [],
                   data: { gates: gates, searches: searches })
      end

      private

      def nothing
        Result.new(tables: [], goals: [Goal.not_measured("gates and --each on real processes")], notes: [], data: {})
      end

      def work(name, factor)
        { "lib/work.rb" => <<~RUBY }
          module Work
            def self.count
              #{name} = 0
              #{name} += 1 while #{name} < #{(COUNT * factor).round}
              #{name}
            end
          end
        RUBY
      end

      # @return [Hash] :failed and :seconds
      def gate(factor)
        Dir.mktmpdir("pitwall-live") do |folder|
          repository = ScratchRepository.new(folder)
          base = repository.commit("base", work("i", 1.0).merge("bench.rb" => BENCH))
          head = repository.commit("head", work("number", factor))
          status, seconds, = compare(folder, "--rev", base, "--rev", head, "--budget", GATE_BUDGET_S.to_s,
                                     "--fail-if", "slower by 3%", "bench.rb", allowed: [0, FAILED])
          { failed: status == FAILED, seconds: seconds }
        end
      end

      # @return [Hash] :named, :right and :seconds
      def search
        Dir.mktmpdir("pitwall-live") do |folder|
          repository = ScratchRepository.new(folder)
          base = repository.commit("base", work("i", 1.0).merge("bench.rb" => BENCH))
          slower = @random.rand(COMMITS)
          ids = Array.new(COMMITS) do |number|
            repository.commit("change #{number}", work("number#{number}", number < slower ? 1.0 : 1.03))
          end
          _, seconds, output = compare(folder, "--each", "#{base}..HEAD", "--budget", EACH_BUDGET_S.to_s,
                                       "--format", "json", "bench.rb", allowed: [0, FAILED, UNDECIDED])
          named = JSON.parse(output).fetch("commits").fetch("outcomes").fetch(0).fetch("named")
          { named: named.size, right: named.map { |id| ids[slower].start_with?(id) || id == ids[slower] } == [true],
            seconds: seconds }
        end
      end

      # @return [Array] status, seconds, output
      def compare(folder, *words, allowed:)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        environment = { "PITWALL_CACHE" => File.join(folder, ".cache") }
        output, errors, status = Open3.capture3(environment, RbConfig.ruby, *PITWALL, "compare", "--quiet", *words,
                                                chdir: folder)
        unless allowed.include?(status.exitstatus)
          raise Context::Failure, "pitwall compare failed: #{errors.lines.first(3).join}"
        end

        [status.exitstatus, (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).round(1), output]
      end

      def gates_table(gates)
        Table.new("a gate `slower by 3%`, --budget #{GATE_BUDGET_S}, of a method of about 1 ms",
                  ["change", "gates", "failed", "s, longest"],
                  gates.map do |name, runs|
                    [name, runs.size, runs.count { |run| run[:failed] }, runs.map { |run| run[:seconds] }.max]
                  end)
      end

      def searches_table(searches)
        Table.new("--each over #{COMMITS} commits of which one is 3% slower, --budget #{EACH_BUDGET_S}",
                  ["search", "named the slower one alone", "commits named", "s"],
                  searches.each_with_index.map do |run, at|
                    [at + 1, run[:right] ? "yes" : "no", run[:named], run[:seconds]]
                  end)
      end

      def goals(gates, searches)
        none, slower = gates.values_at("no effect", "3% slower").map { |runs| runs.count { |run| run[:failed] } }
        right = searches.count { |run| run[:right] && run[:seconds] <= MOST_S }
        [Goal.new("live gates: none without effect fails", "#{none} of #{gates["no effect"].size}", none.zero?),
         Goal.new("live gates: at least 95% of 3% slower fail", "#{slower} of #{gates["3% slower"].size}",
                  slower >= 0.95 * gates["3% slower"].size),
         Goal.new("live --each: names the slower commit within #{MOST_S} s", "#{right} of #{searches.size}",
                  right == searches.size)]
      end
    end
  end
end
