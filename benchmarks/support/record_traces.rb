# frozen_string_literal: true

# Records benchmarks/traces: pairs of two identical sides of each planted program.
#
#   ruby benchmarks/support/record_traces.rb LOAD [PAIRS] [CASE…]
#
# LOAD: idle (nothing else may run on the machine), same_core or other_core (starts a busy process: on the core where
# the processes are measured or on another one), or any other word that describes what else ran.
# PAIRS: 300. CASE: all that are timed.

require "time"
require_relative "traces"

module Benchmarks
  class TraceRecorder
    CASES = %w[method_1ms command_150ms gc_5ms].freeze
    BENCH = Pitwall::Bench
    private_constant :BENCH

    def initialize(load, count, names)
      @load = load
      @count = count
      @planted = names.map { |name| Planted::CASES.fetch(name) }
      @settings = Planted.settings(budget: 0, seed: 1)
      @random = Random.new(1)
    end

    # One case after the other: neighbouring pairs are neighbours in time, as they are in a comparison.
    def call
      beside { @planted.each { |planted| record(planted) } }
    end

    private

    # With a busy process where the load asks for one.
    def beside
      core = { "same_core" => BENCH::Host.measuring_core, "other_core" => 0 }[@load]
      command = [Pitwall.launcher, "1", core.to_s, RbConfig.ruby, "-e", "loop {}"]
      busy = spawn(*command, out: File::NULL, pgroup: true) if core
      yield
    ensure
      Process.kill(:KILL, -busy) && Process.wait(busy) if busy
    end

    def record(planted)
      host = BENCH::Host.new
      blocks = BENCH::Blocks.new(entries(planted), random: @random, in_turns: !planted.command?)
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      pairs = []
      (samples = blocks.run) && pairs << samples while pairs.size < @count
    ensure # what there is when it was stopped is worth keeping
      elapsed = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
      write(planted, pairs, elapsed / pairs.size, host) if pairs.any?
    end

    def entries(planted)
      entries = %w[A B].map do |side|
        measurer = Pitwall::Experiment::Measurers.for(planted.subject(side), @settings)
        measured = measurer.cases.first
        BENCH::Blocks::Entry.new(measurer: measurer, case: measured, calibration: measurer.calibrate(measured))
      end
      entries.last.calibration = entries.first.calibration
      BENCH::Turns.extend([entries.first.calibration]) unless planted.command?
      entries
    end

    def write(planted, pairs, block_ns, host)
      head = { "case" => planted.name, "load" => @load, "block_ns" => block_ns,
               "batches" => pairs.first.first["wall"].size, "date" => Time.now.utc.iso8601,
               "ruby" => RUBY_DESCRIPTION, "host" => BENCH::Host.facts.slice("cpu", "cores", "kernel"),
               "readings" => host.readings.transform_values { |value| value.round(3) } }
      trace = Trace.new(head, pairs.map { |samples| Trace.pair(samples) })
      trace.write
      others = (head["readings"]["others"].to_f * 100).round
      spreads = trace.spreads.map { |name, spread| format("%.2f%% by %s", spread * 100, name) }
      puts "#{planted.name}, #{@load}: #{pairs.size} pairs of #{block_ns / 1_000_000} ms; " \
           "others used #{others}% of the CPU; spread #{spreads.join(", ")}"
    end
  end
end

load, *rest = ARGV
count = rest.first.to_s.match?(/\A\d+\z/) ? Integer(rest.shift) : 300
unknown = rest - Benchmarks::TraceRecorder::CASES
if load.nil? || unknown.any?
  abort "usage: record_traces.rb idle|same_core|other_core [PAIRS] [#{Benchmarks::TraceRecorder::CASES.join("|")}…]"
end
Benchmarks::TraceRecorder.new(load, count, rest.empty? ? Benchmarks::TraceRecorder::CASES : rest).call
