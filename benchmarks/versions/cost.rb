# frozen_string_literal: true

require_relative "../support/clocks"
require_relative "../support/long_recording"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/statistics"

module Benchmarks
  module Versions
    # Is this checkout slower than another version of Pitwall? `--beside FOLDER` names a checkout of the other version,
    # set up for the same Ruby. Without it the checkout stands beside itself: a control, whose ratios are 1.
    #
    # A round runs every case with both versions, each in a fresh process, in random order. The cost of a collector is
    # its CPU time with recording divided by the CPU time without. The figure is this version's cost divided by the cost
    # with the other one, round by round.
    class Cost
      # case => [profiler, program, way to measure, clock, work of one turn, settings of the job]
      CASES = {
        "sample by signal" => ["pitwall_signal", "deep", "interleaved", :cpu_ns, 600_000, { interval_ns: 100_000 }],
        "sample from outside" =>
          ["pitwall_outside", "deep", "interleaved", :thread_cpu_ns, 600_000, { interval_ns: 100_000 }],
        "count every object" => ["pitwall_objects", "objects", "interleaved", :cpu_ns, 500_000, {}],
        "count every object, with stacks" => ["pitwall_objects_stacks", "web_like", "interleaved", :cpu_ns, 800, {}],
        "trace calls, wall time" => ["trace_wall", "call_heavy", "before", :cpu_ns, 120, {}],
        "trace calls, CPU time and objects" => ["trace", "web_like", "before", :cpu_ns, 400, {}],
        "record system calls" => ["pitwall_syscalls", "stats_deep", "interleaved", :cpu_ns, 60_000, {}]
      }.freeze
      PAIRS = 3
      ROUNDS = 12
      REPORTS = { "report" => [], "report --tree" => %w[--tree] }.freeze
      # What script/pitwall does, but for looking whether something has to be built first.
      REPORT = "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')"
      VERSIONS = %w[this other].freeze
      private_constant :CASES, :PAIRS, :ROUNDS, :REPORTS, :REPORT, :VERSIONS

      #: (Context) -> void
      def initialize(context)
        @context = context
        @roots = { "this" => ROOT, "other" => context.beside || ROOT }
      end

      #: () -> Result
      def call
        return nothing if @context.available(%w[pitwall_signal]).empty?

        rounds = Rounds.take(@context, CASES.keys.product(VERSIONS), @context.rounds(ROUNDS)) do |name, version|
          collect(name, version)
        end
        reports = LongRecording.new(@context).with { |path, _samples| report_rounds(path) }
        figures = { **CASES.to_h { |name, _| [name, compared(rounds, name)] },
                    **REPORTS.to_h { |name, _| [name, compared(reports, name)] } }
        Result.new(tables: [table(figures, rounds.size)], goals: figures.map { |name, estimate| goal(name, estimate) },
                   notes: @context.notes + (@context.beside ? [] : ["beside itself: a control"]),
                   data: { rounds: rounds.map { |round| named(round) },
                           reports: reports.map { |round| named(round) } })
      end

      private

      def nothing
        goals = CASES.map { |name, _| Goal.not_measured(text(name)) }
        Result.new(tables: [], goals: goals, notes: @context.notes, data: {})
      end

      # @return [Float, nil] the cost, as a ratio
      def collect(name, version)
        profiler, program, way, clock, amount, settings = CASES.fetch(name)
        amount = [amount / 200, 1].max if @context.quick?
        run = @context.scratch("versions-#{version}") do |out|
          @context.child(profiler: profiler, root: @roots.fetch(version), measure: way, program: program,
                         amount: amount,
                         pairs: @context.quick? ? 1 : PAIRS, out: out, **settings)
        end
        run && run[:on][clock].fdiv(run[:off][clock])
      end

      def report_rounds(path)
        Rounds.take(@context, REPORTS.keys.product(VERSIONS), @context.rounds(ROUNDS)) do |name, version|
          report(path, REPORTS.fetch(name), @roots.fetch(version))
        end
      end

      # @return [Integer] CPU time of the whole command, ns
      def report(path, options, root)
        words = [RbConfig.ruby, "-I", File.join(root, "lib"), "-r", File.join(root, "script/checkout"),
                 "-e", REPORT, "--", "report", path, *options]
        before = Clocks.children_cpu_ns
        system(*words, out: File::NULL) or raise Context::Failure, "pitwall report failed: #{$?}"
        Clocks.children_cpu_ns - before
      end

      # This version's figure divided by the other's.
      def compared(rounds, name)
        pairs = rounds.map { |round| VERSIONS.map { |version| round[[name, version]] } }.select(&:all?)
        return if pairs.empty?

        Statistics.ratio(pairs.map { |this, other| this.fdiv(other) })
      end

      def named(round) = round.transform_keys { |name, version| "#{name}: #{version}" }

      def table(figures, rounds)
        Table.new("this version beside the other (#{rounds} rounds; 95% intervals)",
                  ["case", "cost, this divided by other"],
                  figures.map { |name, estimate| [name, estimate ? show(estimate) : "–"] })
      end

      def show(estimate) = estimate.text("%.3f")

      def text(name) = "not slower than the other version: #{name}"

      # Slower only where the whole interval says so.
      def goal(name, estimate)
        return Goal.not_measured(text(name)) if estimate.nil? || @context.quick?

        Goal.new(text(name), show(estimate), estimate.low <= 1)
      end
    end
  end
end
