# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/own_walk"
require_relative "../support/recorded_program"
require_relative "../stress/stress"

# What getting into a process can break, one test for each hazard known: a recorded program must not notice.
class HazardsTest < Minitest::Test
  include RecordedProgram

  # Signal mode watches the GVL of 3.1, where Ruby's layout is known.
  WAITS_KNOWN = RUBY_VERSION >= "3.2" || !OwnWalk.forced_unknown?

  # Runs the block for each mode; the program's settings are that mode's.
  def in_each_mode
    Stress::MODES.each do |mode|
      @settings = { mode: mode }
      yield mode
    end
  end

  def settings = @settings || {}

  # --- the signal ---

  def test_a_signal_the_program_handles_is_not_stolen
    File.write(file("a.pit"), "PITWALL kept")
    out = run_program(<<~'RUBY')
      got = 0
      trap("URG") { got += 1 }
      puts problem { record(mode: :signal) { puts "never" } }
      Process.kill(:URG, $$)
      puts got, File.read("a.pit")
      puts problem { record("b.pit", mode: :safepoint) { burn(0.02) } }
      puts problem { record("c.pit", signal: "SIGWINCH") { burn(0.02) } }
      Process.kill(:URG, $$)
      puts got, problem { trap("WINCH") {}; record(signal: "WINCH") {} }
    RUBY
    assert_equal ["CannotMeasure: signal URG is already handled by the program: choose --signal WINCH or --mode safepoint", "1", "PITWALL kept",
                  "nothing", "nothing", "2",
                  "CannotMeasure: signal WINCH is already handled by the program: choose --signal URG or --mode safepoint"], out.lines(chomp: true)
    %w[b c].each { |name| assert_sane(segment("#{name}.pit")) }
  end

  def test_a_handler_that_the_program_installs_meanwhile_wins
    out = run_program(<<~'RUBY')
      start(mode: :signal)
      other = Thread.new { loop { burn(0.01) } }
      burn(0.05)
      got = 0
      trap("URG") { got += 1 }
      limit = now + 120
      burn(0.01) until File.read("/proc/self/timers").scan("signal: #{Signal.list["URG"]}/").empty? || now > limit
      burn(0.02)
      settled = got
      burn(0.1)
      puts got - settled
      3.times { Process.kill(:URG, $$) }
      puts got - settled
      other.kill.join
      puts stop.counters[:signal_lost]
      Process.kill(:URG, $$)
      puts got - settled
    RUBY
    assert_equal %w[0 3 1 4], out.lines(chomp: true)
    assert_equal 1, segment.stat("signal_lost")
    assert_sane(segment)
  end

  def test_handlers_and_masks_are_as_before
    in_each_mode do |mode|
      out = run_program(<<~'RUBY')
        # Signals 32 and 33 are the C library's, for its threads.
        look = -> { File.readlines("/proc/self/status").grep(/\ASig(Cgt|Ign|Blk)/) { |line| line[/\h{16}/].hex & 0x7fff_ffff } }
        before = look.call
        record { burn(0.02) }
        p look.call == before
        trap("URG", "IGNORE")
        ignoring = look.call
        record { burn(0.02) }
        p look.call == ignoring, trap("URG", "DEFAULT")
      RUBY
      assert_equal ["true", "true", "\"IGNORE\""], out.lines(chomp: true), mode
    end
  end

  # Somebody else's signal on our number is nobody's sample.
  def test_a_signal_that_no_timer_sent_is_ignored
    run_program(<<~'RUBY')
      start(interval_ns: 1_000_000_000, mode: :signal)
      50.times { Process.kill(:URG, $$) }
      stop
    RUBY
    assert_operator segment.stat("ticks"), :<, 50
    assert_sane(segment)
  end

  def test_a_program_that_uses_sigprof_itself
    skip "this Ruby has no fiddle" unless system(RUBY, "--disable-gems", *gem_options("fiddle"), "-rfiddle", "-e", "", err: File::NULL)
    in_each_mode do |mode|
      out = run_program(<<~'RUBY', options: gem_options("fiddle"))
        require "fiddle"
        setitimer = Fiddle::Function.new(Fiddle.dlopen(nil)["setitimer"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
        every_10_ms = [0, 10_000, 0, 10_000].pack("q4")
        got = alarms = 0
        trap("PROF") { got += 1 }
        trap("ALRM") { alarms += 1 }
        def job = burn(0.2)
        record do
          100.times { Process.kill(:PROF, $$) }
          puts got
          setitimer.call(2, every_10_ms, nil) # ITIMER_PROF
          setitimer.call(0, every_10_ms, nil) # ITIMER_REAL
          job
        end
        puts got > 102, alarms > 2
        before = got
        burn(0.2)
        puts got > before
      RUBY
      assert_equal %w[100 true true true], out.lines(chomp: true), mode
      assert_sampled("Object#job", segment)
      assert_sane(segment)
    end
  end

  # --- interrupted calls ---

  BLOCKED = <<~'RUBY'
    require "socket"
    def waiting(name, &block) = Thread.new(&block).tap { |thread| thread.name = name }
    server = TCPServer.new("127.0.0.1", 0)
    server.listen(0)
    port = server.addr[1]
    first = TCPSocket.new("127.0.0.1", port) # fills the queue: the next has to wait
    reader, writer = IO.pipe
    reader2, writer2 = IO.pipe
    queue = Queue.new
    mutex = Mutex.new
    mutex.lock
    condition = ConditionVariable.new
    inner = Mutex.new
    child = spawn("sleep", "1.2")
  RUBY

  THREADS = <<~'RUBY'
    threads = {
      "read" => waiting("read") { reader.read(5) },
      "select" => waiting("select") { IO.select([reader2], nil, nil, 120)&.flatten&.size },
      "connect" => waiting("connect") { TCPSocket.new("127.0.0.1", port).class },
      "pop" => waiting("pop") { queue.pop },
      "lock" => waiting("lock") { mutex.synchronize { :locked } },
      "wait" => waiting("wait") { inner.synchronize { condition.wait(inner, 120); :signalled } },
      "child" => waiting("child") { Process.wait2(child).last.exitstatus },
      "sleep" => waiting("sleep") { began = now; sleep(1.2); now - began >= 1.2 },
      "join" => waiting("join") { Thread.new { sleep 1.2 }.join.class }
    }
  RUBY

  RELEASE = <<~'RUBY'
    writer.write("hello")
    writer2.write("x")
    queue << :popped
    mutex.unlock
    inner.synchronize { condition.signal }
    2.times { server.accept }
    p threads.transform_values(&:value)
  RUBY

  RESULTS = { "read" => "hello", "select" => 1, "connect" => "TCPSocket", "pop" => :popped, "lock" => :locked, "wait" => :signalled,
              "child" => 0, "sleep" => true, "join" => "Thread" }.freeze

  def results(out) = out.gsub(/=>\s*(TCPSocket|Thread)\b/, '=> "\1"').then { |text| eval(text) }

  def test_blocked_calls_end_as_without_us
    in_each_mode do |mode|
      out = run_program("#{BLOCKED}\nstart(interval_ns: 100_000)\n#{THREADS}\nsleep 0.4\n#{RELEASE}\nstop")
      assert_equal RESULTS, results(out), mode
      assert_sane(segment)
    end
  end

  # A stack that waits cannot change: looking at it once is enough (Ruby 3.2 tells when it waits).
  def test_a_blocked_thread_is_looked_at_once
    return pass unless WAITS_KNOWN # else every thread gets its ticks

    out = run_program("#{BLOCKED}\n#{THREADS}\nsleep 0.1\nstart\nsleep 0.5\nstop\n#{RELEASE}")
    assert_equal RESULTS, results(out)
    rows = threads_of(segment).to_h { |row| [row.name, row] }
    RESULTS.each_key do |name|
      row = rows.fetch(name)
      assert_operator row.captures, :<=, 2, "#{name}: #{row}" # one, and another if it had the GVL for a moment
      assert_operator row.wall, :>=, 450_000_000, name
    end
    # As many signals as there are threads, and a few for the main thread: not five hundred for each.
    assert_operator segment.stat("ticks"), :<, 200
  end

  # Ruby has no method for it.
  MASK_SIGNALS = <<~'RUBY'
    def sigprocmask(set, before) = syscall(RUBY_PLATFORM.include?("x86_64") ? 14 : 135, 0, set, before, 8)
  RUBY

  # IO#sysread that waits fails with EAGAIN when any signal's handler runs. Ruby's test_signal showed it.
  # Ruby's own signals (SIGCHLD, SIGVTALRM) make it fail, too, without Pitwall. The kernel prefers the main thread for
  # these signals, but on a busy machine it may choose any thread. So they are blocked: SIGVTALRM in both threads,
  # SIGCHLD in the one that waits while children end.
  def test_a_waiting_thread_gets_no_signal
    return pass unless WAITS_KNOWN

    out = run_program(MASK_SIGNALS + <<~'RUBY')
      def block(*names)
        set = [names.sum { |name| 1 << (Signal.list.fetch(name) - 1) }].pack("Q")
        address = [set].pack("p").unpack1("J") # syscall refuses strings with a zero byte
        sigprocmask(address, 0)
      end
      block("VTALRM")
      reader, writer = IO.pipe
      at_exit { writer.close } # Ruby could not interrupt the thread without SIGVTALRM
      waits = Thread.new { block("CHLD"); reader.sysread(10) }
      sleep 0.1
      start(mode: "signal", interval_ns: 100_000)
      p Array.new(3) { |n| IO.popen("sleep 0.2; echo #{n}") { |io| 50.times { File.read("/proc/self/stat") }; io.sysread(10) } }
      writer.write("before")
      p waits.value
      stop
    RUBY
    assert_equal ['["0\n", "1\n", "2\n"]', '"before"'], out.lines(chomp: true)
    assert_sampled("IO#sysread", segment)
    assert_sane(segment)
  end

  # No longer than it waits, and whatever it starts does not have the signal blocked.
  def test_the_signal_is_blocked_while_a_thread_waits_and_no_longer
    return pass unless WAITS_KNOWN

    out = run_program(MASK_SIGNALS + <<~'RUBY')
      URG = 1 << (Signal.list.fetch("URG") - 1)
      def blocked(task) = (File.read("/proc/#{task}/status")[/^SigBlk:\s*(\h+)/, 1].hex & URG) != 0
      # File.read may itself be a wait. This system call is none: Ruby keeps the GVL.
      def blocked_here = (sigprocmask(0, mask = "x" * 8); mask.unpack1("Q") & URG != 0)
      pipes = Array.new(2) { IO.pipe } # on one pipe a write would wake both, and one would wait anew
      job = lambda do |reader|
        begin # not after a long wait: the next ones are then expected to be long, too, and need no mask
          50.times { File.read("/proc/self/stat") }
        end while reader.read(1) == "a"
        [blocked_here, Thread.new { blocked_here }.value, `grep SigBlk /proc/self/status`[/\h{16}/].hex & URG, Process.wait2(fork { exit!(blocked_here) }).last.success?]
      end
      start(mode: "signal")
      threads = pipes.map { |reader, _| Thread.new(reader, &job) }
      # In the long wait, not in one of the short ones before it: nothing is left to read, at two looks.
      waits = -> { !IO.select(pipes.map(&:first), nil, nil, 0) && threads.all? { |one| one.native_thread_id && blocked("self/task/#{one.native_thread_id}") } }
      (sleep 0.1; pipes.each { |_, writer| writer.write("a") }; sleep 0.1) until waits.call && (sleep 0.05; waits.call)
      pipes.first.last.write("x")
      sleep 0.01 until threads.one?(&:alive?)
      stop
      p threads.map { |thread| !thread.alive? || blocked("self/task/#{thread.native_thread_id}") }
      pipes.last.last.write("x")
      threads.each { |thread| p thread.value }
      p blocked_here
    RUBY
    assert_equal "[true, true]\n#{"[false, false, 0, false]\n" * 2}false\n", out
  end

  # Ruby's test_array compares its size before and after some work.
  def test_the_program_does_not_grow_by_a_heap_of_ours
    in_each_mode do |mode|
      out = run_program(<<~'RUBY')
        def size = File.read("/proc/self/status")[/^VmSize:\s*(\d+)/, 1].to_i / 1024
        start
        helpers = ["pitwall drain", *("pitwall reader" if SETTINGS[:mode].to_s == "outside")]
        names = -> { Dir["/proc/self/task/*/comm"].map { |path| File.read(path).chomp } }
        sleep 0.001 until (helpers - names.call).empty?
        before = size
        burn(0.4)
        p size - before
        stop
      RUBY
      assert_operator out.to_i, :<, 30, "MB, #{mode}"
    end
  end

  # A thread that waits and never comes back is seen where it waits.
  def test_a_wait_without_an_end_has_a_stack
    run_program(<<~'RUBY')
      queue = Queue.new
      start(mode: "signal")
      Thread.new { 50.times { File.read("/proc/self/stat") }; queue.pop }
      sleep 0.4
      stop
    RUBY
    waits = segment.tallies.flat_map { |tally| tally.to_enum.map { |node, wall,| [segment.frame(node).name, wall] } }
    pop, sleep = [/Queue#pop/, /Kernel#sleep/].map { |pattern| waits.select { |name,| name.match?(pattern) }.sum(&:last) }
    assert_operator pop, :>, sleep / 2, waits.inspect
  end

  # A new wait each time, much shorter or longer than the interval: nothing is interrupted often.
  def test_sleeps_are_as_long_as_asked
    in_each_mode do |mode|
      out = run_program(<<~'RUBY')
        asked = Array.new(100) { rand * 0.004 } + [0.1, 0.2]
        short = record(interval_ns: 100_000) do
          asked.map { |seconds| began = now; sleep(seconds); [seconds, now - began] }.select { |wanted, took| took < wanted - 1e-6 }
        end
        p short.value
        mutex = Mutex.new
        reader, writer = IO.pipe
        checks = record("b.pit", interval_ns: 100_000) do
          took = ->(&block) { began = now; block.call; now - began }
          [took.call { IO.select([reader], nil, nil, 0.1) }, took.call { mutex.synchronize { mutex.sleep(0.1) } },
           took.call { Thread.new { sleep 5 }.join(0.1) }, took.call { Thread.new { sleep 0.1 }.join }, took.call { system("sleep 0.1") }]
        end
        p checks.value.map { |seconds| seconds >= 0.099 && !writer.closed? }
      RUBY
      assert_equal ["[]", "[true, true, true, true, true]"], out.lines(chomp: true), mode
    end
  end

  def test_pipes_and_children_at_the_highest_rate
    in_each_mode do |mode|
      out = run_program(<<~'RUBY')
        record(interval_ns: 100_000) do
          reader, writer = IO.pipe
          sender = Thread.new { 200.times { |i| writer.write("#{i}\n" * 50); burn(0.0001) }; writer.close }
          p reader.each_line.count
          sender.join
          p Array.new(15) { |n| system("exit #{n}"); $?.exitstatus } == [*0..14]
          p Array.new(5) { |n| `echo #{n}` }.join
          p Array.new(5) { |n| Process.wait2(spawn("exit #{n}")).last.exitstatus }
          IO.popen("cat", "r+") { |io| io.write("x" * 200_000) if false; io.puts "through"; io.close_write; p io.read }
        end
      RUBY
      assert_equal ["10000", "true", '"0\n1\n2\n3\n4\n"', "[0, 1, 2, 3, 4]", '"through\n"'], out.lines(chomp: true), mode
      assert_sane(segment)
    end
  end

  # A handler that left its own errno behind would turn one error into another.
  def test_errno_is_the_programs
    in_each_mode do |mode|
      out = run_program(<<~'RUBY')
        record(interval_ns: 100_000) do
          limit = now + 0.5
          wrong = []
          reader, writer = IO.pipe
          while now < limit
            begin
              File.open("/no/such/file")
            rescue SystemCallError => error
              wrong << error.class unless error.is_a?(Errno::ENOENT)
            end
            wrong << :read unless reader.read_nonblock(1, exception: false) == :wait_readable
            begin
              Process.kill(0, 2**22 + 1)
            rescue SystemCallError => error
              wrong << error.class unless error.is_a?(Errno::ESRCH)
            end
          end
          p wrong.uniq, writer.closed?
        end
      RUBY
      assert_equal "[]\nfalse\n", out, mode
    end
  end

  # --- what the program has loaded, opened, started ---

  def test_no_library_is_loaded
    program = <<~'RUBY'
      BEGIN { $before = $LOADED_FEATURES.dup }
      $LOAD_PATH.unshift(ENV.fetch("LIB"))
      require "pitwall"
      Pitwall.start(record: "a.pit", mode: ENV.fetch("MODE"))
      Process.wait(fork { 1 })
      Pitwall.pause
      Pitwall.resume
      Pitwall.stop
      puts $LOADED_FEATURES - $before
    RUBY
    lib = File.realpath(ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib"))
    Stress::MODES.product([[], ["--disable-gems"]]) do |mode, options|
      out, err, status = Open3.capture3(environment("MODE" => mode, "LIB" => lib), RUBY, *options, "-e", program, chdir: @dir)
      assert status.success?, err
      foreign = out.lines(chomp: true).reject { |path| path.start_with?("#{lib}/") || path.end_with?("/rbconfig.rb") || path.include?("/enc/") }
      assert_empty foreign, "#{mode} #{options}"
    end
  end

  def test_no_constant_is_defined_but_ours
    out = run_program(<<~'RUBY')
      before = Object.constants
      record {}
      p Object.constants - before
    RUBY
    assert_equal "[]\n", out
  end

  def test_children_inherit_no_descriptor
    in_each_mode do |mode|
      out = run_program(<<~'RUBY')
        count = -> { IO.popen(["ls", "/proc/self/fd"], &:read).split.size }
        before = count.call
        record { p count.call == before }
        p count.call == before, IO.popen(["cat", "/proc/self/status"], &:read)[/SigBlk:\t(\h+)/, 1].hex, IO.popen(["cat", "/proc/self/status"], &:read)[/SigIgn:\t(\h+)/, 1].hex[22]
      RUBY
      assert_equal %w[true true 0 0], out.lines(chomp: true), mode
    end
  end

  # Our own threads take no signal meant for the program, and are no Ruby threads.
  def test_our_threads_are_out_of_the_way
    in_each_mode do |mode|
      out = run_program(<<~'RUBY')
        tasks = -> { Dir.children("/proc/self/task").sort }
        Thread.new { sleep 0.01 }.join # Ruby's own timer thread
        before = tasks.call
        start
        ours = tasks.call - before
        p Thread.list.size, ours.size.between?(1, 2)
        puts ours.map { |tid| (File.read("/proc/self/task/#{tid}/status")[/SigBlk:\t(\h+)/, 1].hex & 0x7fff_ffff).to_s(16) }.uniq
        stop
        limit = now + 120
        sleep 0.01 until tasks.call & ours == [] || now > limit
        p tasks.call & ours
      RUBY
      # All but KILL and STOP.
      assert_equal ["1", "true", (0x7fff_ffff & ~(1 << 8) & ~(1 << 18)).to_s(16), "[]"], out.lines(chomp: true), mode
    end
  end

  # --- frames that are none ---

  # The load on which a profiler that names whatever it caught aborts Ruby: see test/stress for minutes of it.
  def test_half_pushed_frames
    in_each_mode do |mode|
      run_program(<<~'RUBY')
        words = %w[interval stack a frame weight sampling leaf root of the clock tick ring drain tree]
        record(interval_ns: 100_000) do
          limit = now + 1
          while now < limit
            words.sort_by(&:size).max_by(&:hash)
            words.map(&:to_sym).each_slice(3).to_a
            words.join(" ").gsub(/[aeiou]/) { |v| v.upcase }.scan(/(\w)(\w+)/)
            Class.new { define_method(:call) { |x| x } }.new.call(1)
            begin; Integer("x"); rescue ArgumentError; catch(:a) { throw :a }; end
          end
        end
      RUBY
      assert_sane(segment)
      stats = segment.stats
      assert_operator stats["refused_frames"], :<=, [stats["captures"] / 100, 5].max, mode
    end
  end

  # At the very end of its stack a thread has no room for a handler: it runs on another.
  def test_the_end_of_the_machine_stack
    in_each_mode do
      run_program(<<~'RUBY')
        def deeper(n) = [n].each { |m| deeper(m + 1) }
        def to_the_end
          deeper(0)
        rescue SystemStackError
          nil
        end
        record(interval_ns: 100_000) do
          5.times { to_the_end }
          Thread.new { to_the_end }.join
          Fiber.new { to_the_end }.resume
        end
      RUBY
      assert_sane(segment)
    end
  end

  def test_stacks_deeper_than_the_limit_are_cut_and_counted
    in_each_mode do |mode|
      run_program(<<~'RUBY', env: { "RUBY_THREAD_VM_STACK_SIZE" => (8 << 20).to_s })
        def deep(n) = n.zero? ? burn(0.3) : deep(n - 1)
        record { Thread.new { deep(5000) }.join }
      RUBY
      assert_operator segment.stat("truncated"), :>, 0, mode
      assert_sampled("(stack cut here)", segment)
      assert_sampled("Object#burn", segment)
      assert_sane(segment)
    end
  end

  # --- memory ---

  # New stacks all the time: the tables are emptied when they are full, and what they named stays named.
  def test_memory_is_bounded_by_resets
    out = run_program(<<~'RUBY')
      eval((0...24).map { |n| "def way#{n}(d) = d.zero? ? burn(0.00008) : send(WAYS.sample, d - 1)" }.join("\n"))
      WAYS = (0...24).map { |n| :"way#{n}" }
      peak_kb = -> { File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i }
      20.times { way0(400) }
      GC.start
      before = peak_kb.call
      start(interval_ns: 100_000, flush_ns: 50_000_000)
      limit = now + 200
      way0(400) while now < limit && File.size("a.pit") < 5_000_000 # by then they were emptied nine times
      stop
      puts peak_kb.call - before
    RUBY
    assert_sane(segment)
    assert_operator segment.stat("resets"), :>, 3
    assert_operator out.to_i, :<, 64 << 10
    assert_sampled("Object#way0", segment)
    refute_sampled("(unresolved)", segment)
  end
end
