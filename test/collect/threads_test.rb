# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"

# Which threads there were, what state they were in, and whose time is whose.
module ThreadsContract
  include RecordedProgram

  RUNNING, WAITING, BLOCKED, UNKNOWN, OFF_CPU = 0, 1, 2, 3, 4
  THREAD_EVENTS = RUBY_VERSION >= "3.2"

  def rows = @rows ||= threads_of(segment)

  def row(name) = rows.find { |one| one.name == name } || flunk("no thread #{name} in #{rows.map(&:name)}")

  # Of a thread's time, how much was in these states (0.0 to 1.0).
  def share(row, *states) = row.states.values_at(*states).compact.sum.fdiv(row.wall)

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
    run_program(<<~'RUBY')
      start
      burn(0.2)
      def doze = sleep(0.3)
      doze
      stop
    RUBY
    main = row("main")
    unless THREAD_EVENTS
      assert_empty main.states.keys - [UNKNOWN, OFF_CPU]
      refute segment.header.thread_states?
      assert_match(/no thread events/, segment.header.notes.join)
      return
    end
    assert segment.header.thread_states?
    assert_operator main.states.fetch(RUNNING), :>=, 190_000_000
    assert_operator main.states.fetch(BLOCKED), :>=, 290_000_000
    # Nobody to wait for: what there is comes from Pitwall's own short looks.
    assert_operator main.states.fetch(WAITING, 0), :<, main.wall / 10
    blocked = segment.tallies.select { |tally| tally.state == BLOCKED }
    nodes = blocked.flat_map { |tally| tally.to_enum.map { |node, wall,| [wall, segment.frame(segment.node_frames[node]).name] } }
    assert_equal "Kernel#sleep", name_of_heaviest(BLOCKED), nodes.inspect
  end

  # The leaf that a state's time was spent in most.
  def name_of_heaviest(state)
    weights = Hash.new(0)
    segment.tallies.each { |tally| tally.each { |node, wall,| weights[segment.frame(node).name] += wall } if tally.state == state }
    weights.max_by(&:last)&.first
  end

  def test_two_threads_that_compute_share_the_gvl
    run_program(<<~'RUBY')
      start
      threads = %w[one two].map { |name| Thread.new { Thread.current.name = name; burn(0.5) } }
      threads.each(&:join)
      stop
    RUBY
    two = [row("one"), row("two")]
    two.each { |one| assert_in_delta 500_000_000, one.cpu, 20_000_000 }
    return two.each { |one| assert_empty one.states.keys - [UNKNOWN, OFF_CPU] } unless THREAD_EVENTS

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
    run_program(<<~'RUBY')
      sleeper = Thread.new { Thread.current.name = "sleeper"; sleep }
      reader, writer = IO.pipe
      blocked = Thread.new { Thread.current.name = "reader"; reader.read(1) }
      sleep 0.05
      start
      burn(0.6)
      stop
      writer.close
    RUBY
    %w[sleeper reader].each do |name|
      assert_operator row(name).cpu, :<, 30_000_000, name
      if THREAD_EVENTS
        # A reader that was there before has been interrupted once, and had to wait for the GVL to go on reading.
        assert_operator share(row(name), BLOCKED), :>, 0.5, "#{name} #{row(name)}"
        assert_operator share(row(name), BLOCKED, WAITING), :>, 0.9, "#{name} #{row(name)}"
      else
        assert_empty row(name).states.keys - [UNKNOWN, OFF_CPU]
      end
    end
  end

  # --- coming and going ---

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
      start(interval_ns: 1_000_000_000)
      50.times { Thread.new { 1 }.join }
      stop
    RUBY
    assert_equal 51, segment.threads.size
    assert_sane(segment)
    assert_operator methods_of(segment).fetch("(not sampled)").own, :>, 0
  end

  def test_threads_that_end_in_every_way
    out = run_program(<<~'RUBY')
      start
      ways = {
        "value" => -> { burn(0.03) }, "raise" => -> { burn(0.03); raise "x" }, "exit" => -> { burn(0.03); Thread.exit },
        "throw" => -> { catch(:a) { burn(0.03); throw :a } }, "killed" => -> { burn(0.03); sleep }, "stop" => -> { burn(0.03); Thread.stop }
      }
      threads = ways.map { |name, way| Thread.new { Thread.current.report_on_exception = false; Thread.current.name = name; way.call } }
      sleep 0.01 until threads.all? { |t| !t.alive? || t.status == "sleep" }
      threads.last(2).each(&:kill)
      threads.each { |t| t.join rescue nil }
      30.times { burn(0.005) } # 3.1 tells of some of them by silence only
      p stop.counters[:dropped]
    RUBY
    assert_equal "0", out.strip
    assert_equal 7, rows.size
    # 3.1 does not tell of every thread that ends, so some may be gone before they were asked for their names.
    names = rows.map(&:name) - %w[main] - (THREAD_EVENTS ? [] : [""])
    all = %w[exit killed raise stop throw value]
    assert_empty names - all if THREAD_EVENTS # 3.1 tells of no thread that raises before it was ever seen
    assert_empty all - names if THREAD_EVENTS
    rows.each do |one|
      next if one.name == "main"

      assert_operator one.cpu, :>=, 25_000_000, one.name
      assert_operator one.cpu, :<=, 60_000_000, one.name
    end
    assert_sane(segment)
  end

  # --- fibers, enumerators, Ractors ---

  def test_fibers_and_enumerators_are_on_the_thread_that_runs_them
    run_program(<<~'RUBY')
      def in_fiber = burn(0.02)
      def in_enumerator = burn(0.01)
      record do
        fiber = Fiber.new { 3.times { in_fiber; Fiber.yield } }
        3.times { fiber.resume }
        numbers = Enumerator.new { |y| 5.times { |i| in_enumerator; y << i } }
        5.times { numbers.next }
        Fiber.new { Fiber.new { in_fiber }.resume }.resume
        500.times { Fiber.new { 1 }.resume }
      end
    RUBY
    assert_equal ["main"], rows.map(&:name)
    %w[Object#in_fiber Object#in_enumerator].each { |name| assert_sampled(name, segment) }
    assert_in_delta 80_000_000, methods_of(segment, :cpu)["Object#in_fiber"].total, 25_000_000 + late
    assert_sane(segment)
  end
end

# Where threads of other Ractors are seen.
module RactorsContract
  THREAD_EVENTS = ThreadsContract::THREAD_EVENTS

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
