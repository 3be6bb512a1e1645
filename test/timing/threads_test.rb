# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_threads"

# How much time is whose, and how much of it was spent in which state.
module ThreadsTimingContract
  include RecordedThreads

  # What a thread's own clock says is what the recording says, though nobody ticks in CPU time.
  def test_cpu_of_each_thread_is_that_of_its_clock
    out = run_program(<<~'RUBY')
      clocks = {}
      measured = lambda do |name, &block|
        Thread.current.name = name
        before = cpu
        block.call
        clocks[name] = ((cpu - before) * 1e9).round
      end
      start
      before = cpu
      [Thread.new { measured.call("busy") { burn(0.3) } },
       Thread.new { measured.call("bursts") { 60.times { burn(0.002); sleep(0.0007) } } },
       Thread.new { measured.call("allocating") { limit = cpu + 0.2; Array.new(100) { +"x" } while cpu < limit } },
       Thread.new { measured.call("idle") { sleep 0.3 } }].each(&:join)
      burn(0.1)
      clocks["main"] = ((cpu - before) * 1e9).round
      stop
      p clocks
    RUBY
    eval(out).each do |name, expected|
      assert_in_delta expected, row(name).cpu, expected * 0.01 + 15_000_000, name
    end
    assert_sane(segment)
  end

  def test_states_of_a_thread_alone
    run_program(ALONE)
    return pass unless states?

    main = row("main")
    assert_operator main.states.fetch(RUNNING), :>=, 190_000_000
    assert_operator main.states.fetch(BLOCKED), :>=, 290_000_000
    # Nobody to wait for: what there is comes from Pitwall's own short looks.
    assert_operator main.states.fetch(WAITING, 0), :<, main.wall / 10
  end

  def test_two_threads_that_compute_share_the_gvl
    run_program(SHARING)
    two = [row("one"), row("two")]
    two.each { |one| assert_in_delta 500_000_000, one.cpu, 20_000_000 }
    return unless states?

    two.each do |one|
      # On a busy machine a running thread has to wait for a core as well; it is never running and waiting at once.
      assert_operator share(one, RUNNING, WAITING), :>, 0.95, one.to_s
      assert_operator one.states.fetch(WAITING), :>=, 300_000_000, one.to_s
      assert_operator one.states.fetch(RUNNING), :>=, 400_000_000, one.to_s
    end
    # One GVL: running times don't overlap.
    assert_operator two.sum { |one| one.states.fetch(RUNNING) }, :<=, segment.stat("elapsed_ns") * 1.1
  end

  def test_a_thread_that_sleeps_is_blocked
    run_program(SLEEPING)
    %w[sleeper reader].each do |name|
      assert_operator row(name).cpu, :<, 30_000_000, name
      next unless states?

      # A reader that was there before has been interrupted once, and had to wait for the GVL to go on reading.
      assert_operator share(row(name), BLOCKED), :>, 0.5, "#{name} #{row(name)}"
      assert_operator share(row(name), BLOCKED, WAITING), :>, 0.9, "#{name} #{row(name)}"
    end
  end

  def test_threads_that_end_in_every_way
    run_program(ENDING)
    rows.each do |one|
      next if one.name == "main"

      assert_operator one.cpu, :>=, 25_000_000, one.name
      assert_operator one.cpu, :<=, 60_000_000, one.name
    end
  end

  def test_fibers_are_on_the_thread_that_runs_them
    run_program(FIBERS)
    assert_in_delta 80_000_000, methods_of(segment, :cpu)["Object#in_fiber"].total, 25_000_000 + late
  end
end

class SignalThreadsTimingTest < Minitest::Test
  include ThreadsTimingContract

  def settings = { mode: "signal" }

  # Beside one that works the others cost next to nothing, and what they do is seen all the same: where they wait, and when they work.
  def test_idle_threads_are_left_alone
    out = run_program(<<~'RUBY')
      TOOK = Hash.new(0)
      def timed(name) = (began = now; yield; TOOK[name] += now - began)
      def first = timed("first") { sleep(0.03) }
      def second = timed("second") { sleep(0.06) }
      def work = timed("work") { burn(0.01) }
      6.times { |n| Thread.new { Thread.current.name = "idle"; sleep } }
      Thread.new { loop { first; second } }
      Thread.new { loop { sleep(0.02); work } }
      sleep 0.1
      start
      TOOK.clear
      began = now
      burn(2)
      p [now - began, stop.counters[:ticks], TOOK]
    RUBY
    seconds, ticks, took = eval(out)
    assert_operator ticks, :<, seconds * 3000, "ticks of nine threads"
    walls = methods_of(segment)
    took.each { |name, time| assert_in_delta time, walls["Object##{name}"].total / 1e9, 0.2 + (time * 0.15), name }
    rows.select { |one| one.name == "idle" }.each { |one| assert_in_delta seconds, one.wall / 1e9, 0.3 }
    assert_sane(segment)
  end
end

class OutsideThreadsTimingTest < Minitest::Test
  include ThreadsTimingContract

  def settings = { mode: "outside" }
end

class SafepointThreadsTimingTest < Minitest::Test
  include ThreadsTimingContract

  def settings = { mode: "safepoint" }
end
