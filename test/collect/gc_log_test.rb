# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"

# What is recorded of every garbage collection run, against what the program itself asks of Ruby.
class GCLogTest < Minitest::Test
  include RecordedProgram

  def totals(segment)
    runs = segment.collections
    { "marking" => runs.sum(&:marking_ns), "sweeping" => runs.sum(&:sweeping_ns) }
  end

  # What holds of every recording.
  def assert_log(segment)
    assert_equal segment.stats.fetch("gc_ns"), totals(segment)
    assert_equal segment.stat("gc_count"), segment.collections.sum(&:runs)
    elapsed = segment.stat("elapsed_ns")
    segment.collections.each do |run|
      assert_operator run.longest_ns, :<=, run.total_ns
      assert_operator run.total_ns, :<=, run.span_ns
      assert_operator run.longest_at_ns + run.longest_ns, :<=, run.span_ns
      assert_operator run.end_ns, :<=, elapsed
      assert_operator run.pauses, :>=, 1
      assert_operator run.majors, :<=, run.runs
    end
    segment.collections.each_cons(2) { |a, b| assert_operator a.end_ns, :<=, b.start_ns }
  end

  def test_kinds_causes_and_objects
    counted = eval(run_program(<<~'RUBY'))
      KEEP = Array.new(50_000) { |i| i.to_s }
      GC.start
      GC.disable
      seen = []
      note = -> { seen << GC.latest_gc_info.values_at(:gc_by, :major_by, :immediate_sweep) }
      before = after = nil
      record(mode: "safepoint") do
        GC.start
        note.()
        before = GC.stat(:total_allocated_objects)
        1_000.times { Object.new }
        GC.start(full_mark: false, immediate_sweep: true)
        note.()
        5_000.times { Object.new }
        GC.start(full_mark: true, immediate_sweep: true)
        note.()
        after = GC.stat(:total_allocated_objects)
      end
      p [seen, after - before]
    RUBY
    seen, objects = counted
    assert_log(segment)
    runs = segment.collections
    assert_equal 3, runs.size
    assert_equal [:method] * 3, runs.map(&:cause)
    assert_equal seen, runs.map { |run| [run.cause, run.major_cause, run.immediate_sweeps == 1] }
    assert_equal [1, 0, 1], runs.map(&:majors)
    assert_operator runs[1].allocated, :>=, 1_000
    assert_operator runs[2].allocated, :>=, 5_000
    assert_in_delta objects, runs[1].allocated + runs[2].allocated, 100
    # What is kept lives; 5,000 objects did not survive.
    runs.each { |run| assert_operator run.living, :>=, 50_000 }
    assert_operator (runs[2].living - runs[1].living).abs, :<, 4_000
    assert_equal [segment.threads.keys.first], runs.map(&:thread_id).uniq
  end

  def test_objects_and_bytes_bring_it_about_and_sweeping_is_done_bit_by_bit
    count, objects = eval(run_program(<<~'RUBY'))
      KEEP = Array.new(100_000) { |i| i.to_s }
      before = nil
      count = GC.count
      record do
        before = GC.stat(:total_allocated_objects)
        600_000.times { Object.new }
        200.times { "x" * 1_000_000 }
      end
      p [GC.count - count, GC.stat(:total_allocated_objects) - before]
    RUBY
    assert_log(segment)
    runs = segment.collections
    assert_operator runs.sum(&:runs), :<=, count
    causes = runs.map(&:cause).compact.uniq
    assert_includes causes, :newobj
    assert_includes causes, :malloc
    assert_operator runs.map(&:pauses).max, :>, 1, "no lazy sweep"
    assert_operator runs.sum(&:allocated), :<=, objects + 1_000
    assert_operator runs.sum(&:allocated), :>, objects / 2
  end

  def test_a_killed_process_leaves_what_was_written
    result = attempt(<<~'RUBY')
      start(flush_ns: 10_000_000)
      20.times { GC.start }
      flushed
      Process.kill(:KILL, Process.pid)
    RUBY
    assert_equal Signal.list["KILL"], result.status.termsig
    refute segment.tail
    # All but the one that may have been going on.
    assert_operator segment.collections.sum(&:runs), :>=, 19
    assert_equal [:method], segment.collections.select { |run| run.runs.positive? }.map(&:cause).uniq
  end

  def test_recordings_one_after_the_other_and_without_samples
    run_program(<<~'RUBY')
      record("a.pit") { 3.times { GC.start } }
      GC.start
      record("b.pit", mode: "none") { 2.times { GC.start } }
      record("c.pit") { }
    RUBY
    runs = %w[a b c].map { |name| segment("#{name}.pit").collections.select { |run| run.cause == :method }.sum(&:runs) }
    assert_equal [3, 2, 0], runs # Ruby may collect by itself, too
    %w[a b c].each { |name| assert_log(segment("#{name}.pit")) }
  end

  def test_a_forked_child_has_its_own
    run_program(<<~'RUBY')
      start
      2.times { GC.start }
      pid = fork { 5.times { GC.start }; flushed("a-#{Process.pid}.pit") }
      Process.wait(pid)
      3.times { GC.start }
      stop
    RUBY
    assert_log(segment)
    assert_equal 5, segment.collections.sum(&:runs)
    child = segment(File.basename(Dir[file("a-*.pit")].fetch(0)))
    assert_log(child)
    assert_includes 4..7, child.collections.sum(&:runs) # one may come before its recording begins
  end

  def test_the_collector_at_every_allocation_threads_and_compaction
    run_program(<<~'RUBY')
      record do
        GC.stress = true
        threads = Array.new(2) { Thread.new { 20.times { |i| [i.to_s] } } }
        Fiber.new { 10.times { |i| i.to_s } }.resume
        begin
          raise "x"
        rescue RuntimeError
          nil
        end
        threads.each(&:join)
        GC.stress = false
        if GC.respond_to?(:compact) && (GC.compact rescue false)
          GC.auto_compact = true
          3.times { GC.start }
        end
      end
    RUBY
    assert_log(segment)
    assert_operator segment.collections.size, :>, 50
  end

  # Beyond 100 × 1024 runs each two neighbours become one.
  def test_more_runs_than_there_is_room_for
    run_program(<<~'RUBY')
      record(interval_ns: 10_000_000) { 105_000.times { GC.start(full_mark: false) } }
    RUBY
    assert_log(segment)
    assert_equal 105_000, segment.collections.sum(&:runs)
    assert_includes segment.collections.map(&:runs), 2
    assert_operator segment.collections.size, :<, 60_000
  end
end
