# frozen_string_literal: true

require "tmpdir"
require_relative "../test_helper"
require_relative "../support/recording_builder"
require "pitwall/record"
require "pitwall/analyse"

# The cost of interrupting a sleeping thread is not the thread's own CPU time.
class TickCostTest < Minitest::Test
  Analyse = Pitwall::Analyse

  def test_only_rows_that_wait_count
    found = Analyse::TickCost.of([segment do |s|
      s.row(stack: stack("work"), wall: 1_000_000, cpu: 980_000, captures: 1000)
      s.row(thread: 2, stack: stack("sleep"), wall: 1_000_000, cpu: 20_000, captures: 1000) # 20 µs a tick
      s.row(thread: 3, stack: stack("share"), wall: 1_000_000, cpu: 62_000,
            captures: 1000) # one of sixteen that share the GVL
      s.row(thread: 4, stack: stack("once"), wall: 10_000, cpu: 100, captures: 10)
    end])
    assert_equal [20_000_000, 1000], [found.ns, found.ticks]
    assert_in_delta 20.0 / 1062.1, found.share, 1e-6
  end

  def test_it_is_said_where_it_is_worth_a_word
    notes = lambda do |cpu, **head|
      segment = segment(**head) do |s|
        s.row(stack: stack("work"), wall: 900_000, cpu: 900_000, captures: 900)
        s.row(stack: stack("sleep"), wall: 900_000, cpu: cpu, captures: 900)
      end
      Analyse::Summary.new([segment]).notes.join
    end
    assert_match(/ticks also interrupt waiting threads, for about 20 µs each: 2\.0% of the CPU time of all threads/,
                 notes.call(18_000))
    assert_equal "", notes.call(900)
    assert_equal "", notes.call(18_000, mode: "outside")
  end

  # The time of a handler includes waiting for a core.
  def test_no_share_of_the_cpu_time_is_said_where_ticks_came_late
    share = lambda do |late, handler_ns|
      segment = segment do |s|
        s.stats.merge!("missed_ticks" => late, "handler_ns" => handler_ns)
        s.row(stack: stack("work"), wall: 1000, cpu: 1000)
      end
      Analyse::Summary.new([segment]).own_share
    end
    assert_in_delta 10.0 / 1500, share.call(3, 4_000_000), 1e-9
    assert_nil share.call(900, 600_000_000)
    assert_in_delta 6.0 / 1500, share.call(900, 0), 1e-9 # read from outside: by CPU time
  end

  private

  def stack(name) = [[name, "/app/a.rb", 1, 2]]

  def segment(**head)
    Dir.mktmpdir do |dir|
      file = File.join(dir, "x.pit")
      File.binwrite(file, RecordingBuilder.build(mode: "signal", **head) { |s| yield s })
      Pitwall::Record.read(file).segments.first
    end
  end
end
