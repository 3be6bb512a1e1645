# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require "pitwall/analyse"

# The times of traced calls.
class TraceTimingTest < Minitest::Test
  include RecordedProgram

  def trace(source, options: "", before: "", **given)
    run_program(<<~RUBY, **given)
      #{before}
      def traced = Pitwall.trace(record: "a.pit", #{options}) { yield }
      #{source}
    RUBY
  end

  # Work with few calls: what the probe takes in a call is taken off, and how much that is depends on the machine.
  def test_waiting_is_no_work
    trace(<<~'RUBY')
      $numbers = Array.new(20_000) { |i| i * 7_919 % 20_011 }
      def works
        limit = cpu + 0.1
        $numbers.sort while cpu < limit
      end
      def waits(thread) = thread.join
      traced { waits(Thread.new { works }) }
    RUBY
    tree = Pitwall::Analyse::CallTreeBuilder.build([segment], weights: %i[wall cpu wait calls])
    rows = Pitwall::Analyse::CallTimes.rows(tree, :wall).to_h { |row| [row.method.name, row] }
    assert_operator rows.fetch("Object#waits").total, :>=, 90_000_000
    assert_operator rows.fetch("Thread#join").wait, :>=, 80_000_000
    assert_operator rows.fetch("Object#waits").own, :<, 20_000_000
    cpu = Pitwall::Analyse::CallTimes.rows(tree, :cpu).to_h { |row| [row.method.name, row] }
    assert_operator cpu.fetch("Object#works").total, :>=, 80_000_000
    assert_operator cpu.fetch("Object#waits").total, :<, 30_000_000
  end

  # Threads that take turns at the GVL and sleep, by their own clocks.
  def test_cpu_time_of_threads
    out = trace(<<~'RUBY', options: "objects: false")
      def work(n) = n.times { |i| leaf(i) }
      def leaf(i) = i.to_s
      spent = {}
      traced { 4.times.map { |k| Thread.new { from = cpu; 3.times { work(10_000); sleep 0.01 }; spent[k] = cpu - from } }.each(&:join) }
      puts spent.values
    RUBY
    ours = segment.calls.group_by(&:thread_id).values.map { |rows| rows.sum(&:cpu) }.max(4).sum
    assert_in_epsilon out.lines.sum(&:to_f) * 1e9, ours, 0.05
  end
end
