# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_threads"

# Which threads there were, what state they were in, and whose time is whose.
module ThreadsContract
  include RecordedThreads

  def test_names_of_threads
    run_program(<<~'RUBY')
      before = Thread.new { sleep }.tap { |t| t.name = "before" }
      start
      named = Thread.new { Thread.current.name = "named"; burn(0.05) }
      nameless = Thread.new { burn(0.05) }
      [named, nameless].each(&:join)
      Thread.new { burn(0.05) }.tap { |t| t.name = "renamed" }.join
      before.kill.join
      stop
    RUBY
    assert_equal ["before", "main", "named", "program.rb:4", "renamed"], rows.map(&:name).sort
    assert_sane(segment)
  end

  # It had its first turn after start had asked where each thread runs.
  def test_the_name_of_a_thread_that_began_while_recording_began
    run_program(<<~'RUBY')
      before = Thread.new { sleep }.tap { |t| t.name = "before" }
      Thread.pass until before.status == "sleep"
      Pitwall.const_get(:Compat).singleton_class.prepend(Module.new { def other_threads = super.map { |thread, _| [thread, nil] } })
      start
      burn(0.02)
      before.kill.join
      stop
    RUBY
    assert_equal %w[before main], rows.map(&:name).sort
  end

  def test_wall_time_has_no_gaps
    out = run_program(<<~'RUBY')
      start
      began = now
      burn(0.05)
      Thread.new { Thread.current.name = "two"; $began = now; burn(0.05); sleep 0.1; burn(0.05); $ended = now }.join
      ended = now
      stop
      p [ended - began, $ended - $began].map { |seconds| (seconds * 1e9).round }
    RUBY
    main, two = eval(out)
    # At least what the program saw; at most what lies between start and stop, and a thread's birth and end.
    assert_operator row("main").wall, :>=, main - 2 * segment.unit_ns
    assert_operator row("main").wall, :<=, segment.stat("elapsed_ns") + 2 * segment.unit_ns
    assert_operator row("two").wall, :>=, two - 2 * segment.unit_ns
    assert_operator row("two").wall, :<=, row("main").wall
  end

  # --- states ---

  def test_states_of_a_thread_alone
    run_program(ALONE)
    main = row("main")
    unless states?
      assert_empty main.states.keys - [UNKNOWN, OFF_CPU]
      refute segment.header.thread_states?
      assert_match(/no thread events/, segment.header.notes.join)
      return
    end
    assert segment.header.thread_states?
    assert_operator main.states.fetch(RUNNING), :>, 0
    assert_equal "Kernel#sleep", name_of_heaviest(BLOCKED)
  end

  def test_two_threads_that_compute_wait_for_each_other
    run_program(SHARING)
    two = [row("one"), row("two")]
    return two.each { |one| assert_empty one.states.keys - [UNKNOWN, OFF_CPU] } unless states?

    two.each { |one| [RUNNING, WAITING].each { |state| assert_operator one.states.fetch(state, 0), :>, 0, one.to_s } }
  end

  def test_a_thread_that_sleeps_is_blocked
    run_program(SLEEPING)
    { "sleeper" => "Kernel#sleep", "reader" => "IO#read" }.each do |name, leaf|
      if states?
        assert_equal leaf, name_of_heaviest(BLOCKED, row(name).id), name
      else
        assert_empty row(name).states.keys - [UNKNOWN, OFF_CPU]
      end
    end
  end

  # --- coming and going ---

  # The main thread keeps the GVL from its last push to the end. The stack of the second wait is taken before the wait,
  # because the first wait was long.
  def test_a_thread_that_waits_for_the_gvl_at_the_end_was_blocked_before
    run_program(<<~'RUBY')
      queue = Queue.new
      start
      waits = Thread.new { Thread.current.name = "waits"; 3.times { queue.pop } }
      [0.05, 0.3].each do |seconds|
        Thread.pass until waits.stop?
        sleep seconds
        queue << 1
      end
      burn(0.02)
      stop
    RUBY
    return assert_empty row("waits").states.keys - [UNKNOWN, OFF_CPU] unless states?

    blocked, waited = row("waits").states.values_at(BLOCKED, WAITING).map(&:to_i)
    assert_operator blocked, :>, waited
  end

  # The last wait is charged to the stack at which the thread waited, whatever ends it.
  def test_a_waiting_thread_that_is_ended
    ["waiter.kill; waiter.join", "waiter.raise('x'); waiter.join rescue 1", "Thread.new { waiter.kill; waiter.join }.join", ""].each do |ending|
      run_program(<<~RUBY)
        Thread.report_on_exception = false
        def wait_here = sleep
        start
        waiter = Thread.new { Thread.current.name = "waiter"; wait_here }
        other = Thread.new { burn(0.1) }
        burn(0.1)
        other.join
        sleep 0.3
        #{ending}
        stop
      RUBY
      assert_sane(segment)
      rows = methods_of(segment)
      assert_operator rows.fetch("Object#wait_here").total, :>=, 300_000_000, ending
      # On a busy machine a thread may live for long before anybody looks: of all time it is little.
      assert_operator rows["(not sampled)"]&.own.to_i * 5, :<, rows.values.sum(&:own), "#{ending} #{rows.transform_values(&:own)}"
    end
  end

  # A thread that never had its turn has no time.
  def test_threads_killed_before_their_first_turn
    run_program(<<~'RUBY')
      start
      20.times { Thread.new { sleep }.kill }
      sleep 0.5
      stop
    RUBY
    assert_operator methods_of(segment)["(not sampled)"]&.own.to_i, :<, 400_000_000
    assert_sane(segment)
  end

  def test_threads_that_were_there_before_and_threads_that_end
    out = run_program(<<~'RUBY')
      go = Queue.new
      before = Thread.new { Thread.current.name = "before"; go.pop; burn(0.1) }
      ended = Thread.new { Thread.current.name = "ended before" }.join
      sleep 0.05
      start
      go << 1
      before.join
      during = Thread.new { Thread.current.name = "during"; burn(0.1) }
      p during.native_thread_id
      during.join
      running = Thread.new { Thread.current.name = "running on"; burn(0.1); sleep }
      sleep 0.01 until running.status == "sleep"
      sleep 0.05
      stop
    RUBY
    assert_equal ["before", "during", "main", "running on"], rows.map(&:name).sort
    ["before", "during", "running on"].each { |name| assert_operator row(name).cpu, :>=, 90_000_000, name }
    assert_equal Integer(out), row("during").native_id unless out.strip == "nil"
    assert_operator segment.thread(row("during").id).start_ns, :>, 50_000_000
    assert_sane(segment)
  end

  def test_threads_too_short_to_be_seen_still_count
    run_program(<<~'RUBY')
      start(interval_ns: 20_000_000) # at longer intervals times are rounded to more than such a thread takes
      50.times { Thread.new { 1 }.join }
      stop
    RUBY
    assert_equal 51, segment.threads.size
    assert_sane(segment)
    assert_operator methods_of(segment).fetch("(not sampled)").own, :>, 0
  end

  def test_threads_that_end_in_every_way
    assert_equal "0", run_program(ENDING).strip
    assert_equal 7, rows.size
    # 3.1 does not tell of every thread that ends, so some may be gone before they were asked for their names.
    names = rows.map(&:name) - %w[main] - (THREAD_EVENTS ? [] : [""])
    all = %w[exit killed raise stop throw value]
    assert_empty names - all if THREAD_EVENTS # 3.1 tells of no thread that raises before it was ever seen
    assert_empty all - names if THREAD_EVENTS
    assert_sane(segment)
  end

  # --- fibers, enumerators, Ractors ---

  def test_fibers_and_enumerators_are_on_the_thread_that_runs_them
    run_program(FIBERS)
    assert_equal ["main"], rows.map(&:name)
    %w[Object#in_fiber Object#in_enumerator].each { |name| assert_sampled(name, segment) }
    assert_sane(segment)
  end
end

# Where threads of other Ractors are seen.
module RactorsContract
  THREAD_EVENTS = RecordedThreads::THREAD_EVENTS

  def test_ractors_are_shown_as_threads
    run_program(<<~'RUBY', options: ["-W0"])
      value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
      record do
        ractors = Array.new(2) do
          Ractor.new do
            limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.15
            nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
          end
        end
        ractors.each { |ractor| value.call(ractor) }
      end
    RUBY
    assert_sane(segment)
    others = rows.reject { |one| one.name == "main" }
    return assert_empty(others) unless THREAD_EVENTS # 3.1 tells of the main Ractor's threads only

    assert_equal 2, others.size, rows.map(&:to_s)
    others.each { |one| assert_operator one.cpu, :>=, 140_000_000, one.to_s }
  end
end

class SignalThreadsTest < Minitest::Test
  include ThreadsContract
  include RactorsContract

  def settings = { mode: "signal" }
end

class OutsideThreadsTest < Minitest::Test
  include ThreadsContract
  include RactorsContract

  def settings = { mode: "outside" }
end

class SafepointThreadsTest < Minitest::Test
  include ThreadsContract

  def settings = { mode: "safepoint" }

  # Postponed jobs run in the main Ractor: others are there with their time, but without a place.
  def test_ractors_do_no_harm
    run_program(<<~'RUBY', options: ["-W0"])
      value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
      record { Array.new(2) { Ractor.new { 20_000.times { [1].map(&:to_s) }; 1 } }.each { |ractor| value.call(ractor) } }
    RUBY
    assert_sane(segment)
  end
end
