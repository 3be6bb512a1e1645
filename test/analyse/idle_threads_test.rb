# frozen_string_literal: true

require "tmpdir"
require_relative "../test_helper"
require_relative "../support/recording_builder"
require "pitwall/record"
require "pitwall/analyse"

class IdleThreadsTest < Minitest::Test
  def test_a_thread_that_waited_at_one_place_is_idle_and_one_that_worked_is_not
    segment = segment_with do |s|
      s.row(thread: 1, stack: stack("work"), wall: 900, cpu: 850)
      s.row(thread: 1, stack: stack("read"), wall: 100, cpu: 0, state: 2)
      s.row(thread: 2, stack: stack("sleep"), wall: 1000, cpu: 1, state: 2)
    end
    assert_equal [[2]], Pitwall::Analyse::IdleThreads.find([segment]).values
  end

  def test_a_thread_that_waits_at_many_places_is_not_idle
    segment = segment_with do |s|
      s.row(thread: 1, stack: stack("work"), wall: 900, cpu: 850)
      s.row(thread: 2, stack: stack("query_a"), wall: 500, cpu: 1, state: 2)
      s.row(thread: 2, stack: stack("query_b"), wall: 500, cpu: 1, state: 2)
    end
    assert_empty Pitwall::Analyse::IdleThreads.find([segment])
  end

  def test_nothing_is_left_out_where_everything_waits
    segment = segment_with { |s| s.row(stack: stack("sleep"), wall: 1000, cpu: 1, state: 2) }
    assert_empty Pitwall::Analyse::IdleThreads.find([segment])
  end

  def test_a_long_call_that_burns_is_not_idle
    segment = segment_with do |s|
      s.row(thread: 1, stack: stack("sort"), wall: 1000, cpu: 990)
      s.row(thread: 2, stack: stack("work"), wall: 900, cpu: 850)
    end
    assert_empty Pitwall::Analyse::IdleThreads.find([segment])
  end

  private

  def stack(name) = [["Object#run", "/app/a.rb", 1, 2], ["Object##{name}", "/app/a.rb", 5, 6]]

  def segment_with(&block)
    Dir.mktmpdir do |dir|
      path = File.join(dir, "x.pit")
      File.binwrite(path, RecordingBuilder.build { |s| [1, 2].each { |id| s.thread(id, "t#{id}") }; block.call(s) })
      return Pitwall::Record.read(path).segments.first
    end
  end
end
