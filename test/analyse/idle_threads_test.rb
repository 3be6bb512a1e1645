# frozen_string_literal: true

require "tmpdir"
require_relative "../test_helper"
require_relative "../support/recording_builder"
require "pitwall/record"
require "pitwall/analyse"

class IdleThreadsTest < Minitest::Test
  def setup
    @dir = Dir.mktmpdir("pitwall-idle-")
  end

  def teardown = FileUtils.rm_rf(@dir)

  # Stack of a waiting thread, leaf first → whether it waits for work.
  WAITS = {
    "Thread::Queue#pop" => true, "Thread::Queue#pop < Worker#next_job < Worker#run" => true,
    "Thread::Queue#pop < Pool#checkout < Pool#with < Worker#perform" => false,
    "TCPServer#accept < Server#loop < Server#run < Server#start" => true, "IO.select" => true,
    "IO.select < Http#read < Http#get" => false,
    "Kernel#sleep < block (2 levels) in Object#run < Kernel#loop" => true, "Kernel#sleep < Client#retry" => false,
    "Thread::Mutex#sleep < Thread::ConditionVariable#wait < block (2 levels) in Object#run < " \
    "Thread::Mutex#synchronize < Pool#locked" => true,
    "Thread::Mutex#sleep < Thread::ConditionVariable#wait < block in Pool#checkout < " \
    "Thread::Mutex#synchronize < Pool#checkout" => false,
    "Thread::ConditionVariable#wait < Pool#checkout < Pool#with" => false,
    "Thread::Mutex#synchronize" => false, "Thread::Mutex#lock" => false, "Thread::SizedQueue#push" => false,
    "IO#gets" => false,
    "Process.wait" => false, "Thread#join" => false, "Kernel#system" => false
  }.freeze

  def test_waiting_for_work_is_told_from_waiting_within_work
    WAITS.each do |leaf, idle|
      found = left_out do |s|
        s.row(thread: 1, stack: stack("work"), wall: 1000, cpu: 990)
        s.row(thread: 2, stack: stack(leaf), wall: 1000, cpu: 1, state: 2)
      end
      assert_equal idle ? [2] : [], found, leaf
    end
  end

  def test_only_the_main_thread_waits_in_join_for_the_others
    found = left_out do |s|
      s.row(thread: 1, stack: stack("work"), wall: 1000, cpu: 990)
      s.thread(102, "main", native_id: 4242)
      s.row(thread: 102, stack: stack("Thread#join"), wall: 1000, cpu: 1, state: 2)
    end
    assert_equal [102], found
  end

  # The main threads of Puma's master and of Sidekiq wait for signals.
  def test_only_the_main_thread_waits_for_signals
    { "IO#wait_readable < Puma::Cluster#run < Puma::Launcher#run < Puma::CLI#run" => [102],
      "IO#wait_readable < Sidekiq::CLI#launch < Sidekiq::CLI#run" => [102],
      "IO#wait_readable < Client#read < Sidekiq::CLI#launch" => [] }.each do |leaf, idle|
      [4242, 77].each do |native_id|
        found = left_out do |s|
          s.row(thread: 1, stack: stack("work"), wall: 1000, cpu: 990)
          s.thread(102, "x", native_id: native_id)
          s.row(thread: 102, stack: stack(leaf), wall: 1000, cpu: 1, state: 2)
        end
        assert_equal native_id == 4242 ? idle : [], found, leaf
      end
    end
  end

  def test_a_thread_that_waits_for_work_at_several_places_is_idle
    found = left_out do |s|
      s.row(thread: 1, stack: stack("work"), wall: 1000, cpu: 990)
      s.row(thread: 2, stack: stack("Kernel#sleep"), wall: 500, cpu: 1, state: 2)
      s.row(thread: 2, stack: stack("Thread::Queue#pop"), wall: 500, cpu: 1, state: 2)
    end
    assert_equal [2], found
  end

  def test_a_thread_that_waited_for_work_is_idle_and_one_that_worked_is_not
    segment = segment_with do |s|
      s.row(thread: 1, stack: stack("work"), wall: 900, cpu: 850)
      s.row(thread: 1, stack: stack("read"), wall: 100, cpu: 0, state: 2)
      s.row(thread: 2, stack: stack("Kernel#sleep"), wall: 1000, cpu: 1, state: 2)
    end
    assert_equal [[2]], Pitwall::Analyse::IdleThreads.find([segment]).values
  end

  def test_a_thread_that_waits_for_answers_is_not_idle
    segment = segment_with do |s|
      s.row(thread: 1, stack: stack("work"), wall: 900, cpu: 850)
      s.row(thread: 2, stack: stack("query_a"), wall: 500, cpu: 1, state: 2)
      s.row(thread: 2, stack: stack("query_b"), wall: 500, cpu: 1, state: 2)
    end
    assert_empty Pitwall::Analyse::IdleThreads.find([segment])
  end

  def test_nothing_is_left_out_where_everything_waits
    segment = segment_with { |s| s.row(stack: stack("Kernel#sleep"), wall: 1000, cpu: 1, state: 2) }
    assert_empty Pitwall::Analyse::IdleThreads.find([segment])
  end

  def test_threads_of_continuous_recording_are_left_out_whatever_they_did
    segment = segment_with do |s|
      s.thread(2, "pitwall continuous")
      s.row(thread: 1, stack: stack("work"), wall: 900, cpu: 850)
      s.row(thread: 2, stack: stack("write"), wall: 500, cpu: 490)
      s.row(thread: 2, stack: stack("Kernel#sleep"), wall: 500, cpu: 1, state: 2)
    end
    assert_equal [[2]], Pitwall::Analyse::IdleThreads.find([segment]).values
  end

  def test_a_long_call_that_burns_is_not_idle
    segment = segment_with do |s|
      s.row(thread: 1, stack: stack("sort"), wall: 1000, cpu: 990)
      s.row(thread: 2, stack: stack("work"), wall: 900, cpu: 850)
    end
    assert_empty Pitwall::Analyse::IdleThreads.find([segment])
  end

  def test_without_states_threads_that_share_the_gvl_in_one_call_are_not_idle
    [4, 25, 40, 100].each do |threads|
      found = left_out(states: false) do |s|
        s.row(thread: 1, stack: stack("work"), wall: 50_000, cpu: 50_000, captures: 50, state: 3)
        # A turn of 20 ms, then the turns of the other threads.
        (2..threads + 1).each do |id|
          4.times do
            s.row(thread: id, stack: stack("count"), wall: 20_000, cpu: 20_000, captures: 20, state: 3)
            s.row(thread: id, stack: stack("count"), wall: 20_000 * (threads - 1), cpu: 0, captures: 20 * (threads - 1),
                  state: 3)
          end
        end
      end
      assert_empty found, threads.to_s
    end
  end

  def test_without_states_what_our_ticks_cost_is_no_work
    [1, 4, 40].each do |threads|
      found = left_out(states: false) do |s|
        s.row(thread: 1, stack: stack("work"), wall: 1_000_000, cpu: 900_000, captures: 1000, state: 3)
        (2..threads + 1).each do |id|
          s.row(thread: id, stack: stack("Kernel#sleep"), wall: 1_000_000, cpu: 18_000, captures: 1000, state: 3)
        end
      end
      assert_equal (2..threads + 1).to_a, found
    end
  end

  def test_many_that_do_a_little_each_are_not_left_out_together
    found = left_out do |s|
      s.row(thread: 1, stack: stack("work"), wall: 1000, cpu: 500)
      (2..61).each { |id| s.row(thread: id, stack: stack("count"), wall: 1000, cpu: 16, state: 1) }
    end
    assert_operator found.size * 16, :<=, (500 + 60 * 16) * 0.05
  end

  private

  # A method below the thread's block, or a C function that the block calls.
  def stack(name)
    root = ["block in Object#run", "/app/a.rb", 1, 2]
    return [root, ["Object##{name}", "/app/a.rb", 5, 6]] unless name.match?(/[A-Z]/)

    calls = name.split(" < ").reverse.map do |call|
      call.match?(/\A(Thread::|Kernel|IO|TCP|Process)/) ? [call, "", 0, 0, 1] : [call, "/app/a.rb", 5, 6]
    end
    [root, *calls]
  end

  def left_out(**options, &block)
    segment_with(**options, &block).then { |segment| Pitwall::Analyse::IdleThreads.find([segment]).values.flatten }
  end

  def segment_with(states: true)
    path = File.join(@dir, "x.pit")
    bytes = RecordingBuilder.build(thread_states: states) do |s|
      (1..101).each { |id| s.thread(id, "t#{id}") }
      yield s
    end
    File.binwrite(path, bytes)
    Pitwall::Record.read(path).segments.first
  end
end
