# frozen_string_literal: true

require "tmpdir"
require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/shop"
require_relative "../support/statistics"

module Benchmarks
  module Syscalls
    # What recording file-system calls costs. One figure is of a call that does next to nothing with a stack of 50 Ruby
    # frames below it, with and without recording in turns in one process. The other is of the start of the Rails
    # application in examples/shop, a fresh process each time, beside strace.
    class Overhead
      MOST_NS = 3000
      MOST_BOOT = 1.5
      BOOTS = { "plain" => nil, "count" => { "syscalls.count" => 1 }, "stacks" => { "syscalls.stacks" => 1 },
                "strace" => :strace }.freeze
      CALLS = { "count" => { "count" => "1" }, "stacks" => { "stacks" => "1" } }.freeze
      ROUNDS = 10
      TURNS = 9
      # Once is enough to see it.
      STRACE_ROUNDS = 1
      private_constant :BOOTS, :CALLS, :ROUNDS, :TURNS, :STRACE_ROUNDS

      # Alone in a process: ns a call, off and on in turns.
      CHILD = <<~'RUBY'
        require "pitwall"
        require ARGV[0]
        times, turns, options, file = Integer(ARGV[1]), Integer(ARGV[2]), eval(ARGV[3]), ARGV[4]
        program = Programs::StatsDeep.new
        clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
        timed = -> { began = clock.call; program.run(times); (clock.call - began).fdiv(times) }
        program.run(times)
        readings = Array.new(turns) do
          [false, true].shuffle.to_h do |on|
            Pitwall.start(record: file, mode: "none", collectors: { "syscalls" => options }) if on
            took = timed.call
            Pitwall.stop if on
            [on, took]
          end
        end
        print readings.map { |pair| "#{pair[false]} #{pair[true]}" }.join(";")
      RUBY
      private_constant :CHILD

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        calls = CALLS.to_h { |name, options| [name, time_calls(name, options)] }
        boots = boots()
        Result.new(tables: [calls_table(calls), boots_table(boots)], goals: [call_goal(calls), boot_goal(boots)],
                   notes: @notes.to_a, data: [{ calls: calls, boots: boots }])
      end

      private

      def time_calls(name, options)
        @context.scratch("syscalls-#{name}") do |file|
          times, turns = @context.quick? ? [2000, 1] : [40_000, @context.rounds(TURNS)]
          words = [RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-e", CHILD,
                   File.join(ROOT, "benchmarks/programs/stats_deep.rb"), times.to_s, turns.to_s, options.inspect, file]
          output = IO.popen(words, &:read)
          raise Context::Failure, "the process that makes calls failed" unless $?.success?

          output.split(";").map { |pair| pair.split.map(&:to_f) }
        end
      end

      # A round runs each way once; under strace a start takes most of a minute.
      def boots
        unless Shop.prepared?
          @notes = ["#{Shop::MISSING}: no start was measured"]
          return []
        end

        names = BOOTS.keys - ["strace"]
        rounds = Rounds.take(@context, names, @context.rounds(ROUNDS)) { |name| boot(BOOTS.fetch(name)) }
        return rounds if @context.quick?

        traced = Array.new(STRACE_ROUNDS) { boot(:strace) }.compact
        rounds.first(traced.size).zip(traced) { |round, time| round["strace"] = time }
        rounds
      end

      # ns; nil: strace is not there
      def boot(way)
        return timed { Shop.start(way) } unless way == :strace
        return nil unless system("command -v strace > /dev/null")

        Dir.mktmpdir("pitwall-strace") do |folder|
          words = ["strace", "-f", "-qq", "-e", "trace=%file,%desc", "-o", File.join(folder, "log")]
          timed { Shop.start(under: words) }
        end
      end

      def timed
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        yield
        Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began
      end

      def added(pairs) = Statistics.estimate(pairs.map { |off, on| on - off })

      def calls_table(calls)
        rows = calls.map do |name, pairs|
          [name, show(Statistics.estimate(pairs.map(&:first)), "%d"), show(added(pairs), "%d")]
        end
        Table.new("File.exist? below 50 Ruby frames (ns a call; 95% intervals)", ["way", "without", "added"], rows)
      end

      def boots_table(boots)
        names = boots.flat_map(&:keys).uniq.sort_by { |name| BOOTS.keys.index(name) }
        rows = names.map do |name|
          seconds = Statistics.median(boots.filter_map { |round| round[name] }) / 1e9
          [name, format("%.2f", seconds), name == "plain" ? "1" : show(ratio(boots, name), "%.2f")]
        end
        Table.new("start of examples/shop (#{boots.size} rounds; 95% intervals)", ["way", "s", "ratio"], rows)
      end

      def ratio(boots, name)
        Statistics.ratio(boots.select { |round| round[name] }.map { |round| round[name].fdiv(round["plain"]) })
      end

      def show(estimate, form) = estimate.text(form)

      def call_goal(calls)
        text = "recording a call with its stack of 50 frames adds at most #{MOST_NS} ns"
        return Goal.not_measured(text) if @context.quick?

        estimate = added(calls.fetch("stacks"))
        Goal.at_most(text, show(estimate, "%d"), estimate, MOST_NS)
      end

      def boot_goal(boots)
        text = "the start of a Rails application takes at most #{MOST_BOOT} times as long"
        return Goal.not_measured(text) if @context.quick? || boots.empty?

        estimate = ratio(boots, "stacks")
        Goal.at_most(text, show(estimate, "%.2f"), estimate, MOST_BOOT)
      end
    end
  end
end
