# frozen_string_literal: true

require_relative "../support/perf_witness"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Native
    # Do Pitwall's native frames and `perf` agree? Both sample the same run of one thread. A function's share is the CPU
    # time, or perf's samples, in the function itself. Kernel time counts for the function that called the kernel. The
    # interpreter is one function here: Pitwall charges its loop and the function around it to Ruby methods. Functions
    # of Pitwall itself, which perf sees while a sample is taken, are left out. A figure is the mean difference of the
    # runs, with its interval: the chance of sampling is in each run's difference.
    #
    # Functions without the GVL are seen by perf only: Pitwall shows their time as one frame. And on a stripped Ruby
    # perf has no name for the function around the loop, so there the interpreter does not count for the goal.
    #
    # Needs a quiet machine. A guess why: where other programs want the cores, a thread may often be switched off in a
    # system call, and the tick that was due then finds the thread there. This was not measured.
    class Agreement
      # program => amount of work between two looks at the clock
      PROGRAMS = { "extensions" => 1, "c_blocks" => 1, "objects" => 2000, "requires" => 50, "web_like" => 20 }.freeze
      HEAVIEST = 10
      ROUNDS = 6
      SECONDS = 5
      INTERVAL_NS = 503_000 # no multiple of perf's interval
      PER_SECOND = 1993
      LEAST_SAMPLES = 10_000
      GOAL_POINTS = 1.0
      # The interpreter's loop and the function around it.
      LOOP = /\A(?:rb_)?vm_exec(?:_core)?(?:\.|\z)/.freeze
      INTERPRETER = ["(Ruby)", "(interpreter)"].freeze
      OWN = "pitwall.so"
      private_constant :PROGRAMS, :HEAVIEST, :ROUNDS, :SECONDS, :INTERVAL_NS, :PER_SECOND, :LEAST_SAMPLES, :GOAL_POINTS,
                       :LOOP, :INTERPRETER, :OWN

      #: (Context) -> void
      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        reason = PerfWitness.missing
        return nothing(reason) if reason || @context.available(%w[pitwall_native]).empty?

        runs = PROGRAMS.to_h { |program, amount| [program, measure(program, amount)] }
        found = runs.transform_values { |rounds| compared(rounds) }
        Result.new(tables: found.map { |program, rows| table(program, rows, runs.fetch(program)) },
                   goals: found.map { |program, rows| goal(program, rows, runs.fetch(program)) }, notes: @context.notes,
                   data: runs.map { |program, rounds| { program: program, rounds: rounds.map { |run| listed(run) } } })
      end

      private

      def nothing(reason)
        Result.new(tables: [], goals: PROGRAMS.keys.map { |program| Goal.not_measured(text(program)) },
                   notes: @context.notes + [*reason], data: {})
      end

      # @return [Array<Hash>] of each run: ours and perf's, [object, function] => weight
      def measure(program, amount)
        job = { measure: "window", program: program, amount: amount, interval_ns: INTERVAL_NS,
                seconds: @context.quick? ? 0.2 : SECONDS }
        Array.new(@context.rounds(ROUNDS)) do
          @context.scratch("agreement") do |out|
            @context.scratch("agreement-perf") do |data|
              witness = PerfWitness.new(data, PER_SECOND)
              run = @context.child(profiler: "pitwall_native", under: witness.command, out: out, **job) or next
              @context.progress
              own = ours(out, run[:tid])
              { ours: own, perf: perfs(witness.functions(**run), own) }
            end
          end
        end.compact
      end

      def ours(path, tid)
        require "pitwall/record"
        found = Hash.new(0)
        Pitwall::Record.read(path).segments.each do |segment|
          segment.tallies.each do |tally|
            next unless segment.thread(tally.thread_id).native_id == tid

            tally.each do |node, _wall, cpu, _captures|
              found[key_of(segment.frame(node))] += cpu * segment.unit_ns unless node.zero?
            end
          end
        end
        found
      end

      def key_of(frame)
        return INTERPRETER if frame.kind != Pitwall::Record::Frame::NATIVE || LOOP.match?(frame.name)

        object = File.basename(File.file?(frame.path) ? File.realpath(frame.path) : frame.path)
        [object, frame.name.sub(/@@?.*/, "").sub(/\A#{Regexp.escape(File.basename(frame.path))}(?=\+0x)/, object)]
      end

      # Where Ruby is stripped, its loop has no name. It is then the heaviest function of Ruby's that Pitwall has not.
      def perfs(functions, ours)
        named = functions.keys.select { |_object, name| LOOP.match?(name) }
        unnamed = functions.keys.select { |key| key.last.match?(/ruby.*\+0x/) && !ours.key?(key) }
        @stripped = named.none? { |key| key.last == "vm_exec_core" }
        named << unnamed.max_by { |key| functions[key] } if unnamed.any? && @stripped
        functions.each_with_object(Hash.new(0)) do |(key, count), found|
          found[named.include?(key) ? INTERPRETER : key] += count unless key.first == OWN
        end
      end

      # The heaviest functions by both together: [key, mean share of ours, of perf's, estimate of the difference]
      def compared(rounds)
        return [] if rounds.empty?

        shares = rounds.map { |run| run.transform_values { |sums| percents(sums) } }
        keys = shares.flat_map { |run| run.values.flat_map(&:keys) }.uniq
        found = keys.map do |key|
          both = %i[ours perf].map { |side| shares.map { |run| run[side].fetch(key, 0.0) } }
          [key, *both.map { |values| Statistics.mean(values) }, both.transpose.map { |ours, perf| ours - perf }]
        end
        found.max_by(HEAVIEST) { |_key, ours, perf, _| ours + perf }
             .map { |key, ours, perf, differences| [key, ours, perf, Statistics.estimate(differences)] }
      end

      def percents(sums)
        whole = sums.values.sum
        sums.transform_values { |sum| 100.0 * sum / whole }
      end

      def table(program, rows, rounds)
        Table.new("#{program}, #{rounds.size} runs of #{SECONDS} s, #{samples(rounds)} samples of perf's " \
                  "(95% intervals)",
                  ["function", "object", "Pitwall, %", "perf, %", "difference, points"],
                  rows.map do |(object, name), ours, perf, estimate|
                    [name, object, format("%.2f", ours), format("%.2f", perf), show(estimate)]
                  end)
      end

      def samples(rounds) = rounds.sum { |run| run[:perf].values.sum }

      def show(estimate) = estimate.text("%+.2f")

      def listed(run)
        run.transform_values do |sums|
          percents(sums).max_by(3 * HEAVIEST) { |_key, share| share }.map { |key, share| [*key, share.round(3)] }
        end
      end

      def text(program)
        "shares of the #{HEAVIEST} heaviest functions within #{GOAL_POINTS} point of perf's (#{program})"
      end

      def goal(program, rows, rounds)
        return Goal.not_measured(text(program)) if rows.empty? || @context.quick? || samples(rounds) < LEAST_SAMPLES

        judged = @stripped ? rows.reject { |row| row.first == INTERPRETER } : rows
        _key, _ours, _perf, worst = judged.max_by { |row| row.last.point.abs }
        met = worst.low >= -GOAL_POINTS && worst.high <= GOAL_POINTS
        met = nil if !met && worst.low <= GOAL_POINTS && worst.high >= -GOAL_POINTS
        Goal.new(text(program), "largest difference #{show(worst)} points", met)
      end
    end
  end
end
