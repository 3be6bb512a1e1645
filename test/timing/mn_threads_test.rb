# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/mn_program"

# Whose time is whose among threads that share native threads.
class MNThreadsTimingTest < Minitest::Test
  include MNProgram

  # CPU time is that of the native threads, which run nothing else: all of it is somebody's, and nobody's twice. What the process
  # burned between two looks at its clock belongs to the thread that looks, as only one runs at a time: that is each thread's truth.
  def test_cpu_time_of_threads_that_burn
    each_mode do |mode|
      out = run_mn(<<~'RUBY')
        def clock = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
        $burned = Hash.new(0)
        def look # between reading the clock and setting $seen no thread can be interrupted: Ruby does that where methods end, and at jumps
          now = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
          $burned[Thread.current.name] += now - $seen
          $seen = now
        end
        def work(n) = n.times { |i| i.to_s; look if i % 100 == 0 }
        before = $seen = clock
        record do
          $seen = clock
          Array.new(4) { |i| Thread.new { Thread.current.name = "burner #{i}"; work(i < 2 ? 400_000 : 800_000) } }.each(&:join)
        end
        puts clock - before, $burned.sort.map(&:last)
      RUBY
      process, *truth = out.split.map(&:to_i)
      assert_sane(segment)
      burners = threads_of(segment).select { |row| row.name.start_with?("burner") }.sort_by(&:name)
      assert_equal 4, burners.size, mode
      own = segment.stat("own_cpu_ns")
      spent = segment.stat("process_cpu_ns") - own
      assert_operator threads_of(segment).sum(&:cpu), :<=, [spent, process].max + 40_000_000, mode
      assert_operator burners.sum(&:cpu), :>=, spent * 0.7, mode
      # Pitwall's own threads burn beside them.
      burners.zip(truth) { |row, burned| assert_in_delta burned, row.cpu, own + 30_000_000, "#{mode}: #{burners.map(&:to_a)}, burned #{truth}" }
      assert_sampled("Object#work", segment)
    end
  end

  def test_threads_that_sleep_are_blocked_where_they_sleep
    each_mode do |mode|
      run_mn(<<~'RUBY')
        def doze = sleep(0.3)
        record { Array.new(20) { |i| Thread.new { Thread.current.name = "sleeper #{i}"; doze } }.each(&:join) }
      RUBY
      assert_sane(segment)
      sleepers = threads_of(segment).select { |row| row.name.start_with?("sleeper") }
      assert_equal 20, sleepers.size, mode
      sleepers.each do |row|
        assert_operator row.states.fetch(2, 0), :>=, 250_000_000, "#{mode}: #{row.to_a}"
        assert_operator row.cpu, :<=, 20_000_000, "#{mode}: #{row.to_a}"
      end
      # Nobody sleeps anywhere else.
      assert_operator methods_of(segment)["Object#doze"].total, :>=, 20 * 250_000_000, mode
    end
  end
end if RUBY_VERSION >= "3.3"
