# frozen_string_literal: true

require_relative "recorded_program"

# What every collector has to stand, whatever its way of looking at a program. A test class includes this and says with
# `settings` which collector is meant.
module CollectorContract
  include RecordedProgram

  # A program that ends in an unusual way, some time after a flush.
  def run_until_flush(ending, **options)
    attempt("def job = burn(0.2)\nstart(flush_ns: 50_000_000); job; flushed(method: \"Object#job\"); #{ending}", **options)
  end

  # What was flushed can be read; the reader says that the end is missing.
  def assert_readable_to_the_last_flush(name = "a.pit")
    recording = read(name)
    assert_equal [:unstopped], recording.warnings.map(&:code)
    assert_nil recording.segments.fetch(0).tail
    assert_sampled("Object#job", recording.segments)
  end

  # It was ended before the process was.
  def assert_complete(reason, name = "a.pit")
    recording = read(name)
    assert_empty recording.warnings.map(&:code)
    assert_equal reason, recording.segments.fetch(0).tail["reason"]
    assert_sampled("Object#job", recording.segments)
  end

  # The recordings of forked children.
  def child_recordings = Dir.children(@dir).grep(/\Aa-\d+\.pit\z/)

  # --- start and stop ---

  def test_a_recording
    out = run_program(<<~'RUBY')
      def job = burn(0.1)
      result = record { job; :value }
      p result.value, File.basename(result.path), result.counters.fetch(:captures).positive?, Pitwall.recording?
    RUBY
    assert_equal ":value\n\"a.pit\"\ntrue\nfalse\n", out
    assert_sane(segment)
    assert_sampled("Object#job", segment)
    assert_equal({ "reason" => "stop" }, segment.tail)
    assert_empty read.warnings
  end

  def test_starting_twice_is_refused_and_the_first_goes_on
    out = run_program(<<~'RUBY')
      start
      puts problem { start("b.pit") }, File.exist?("b.pit"), Pitwall.recording?
      def job = burn(0.1)
      job
      stop
    RUBY
    assert_equal ["StateError: already recording to #{file("a.pit")}: stop that first", "false", "true"], out.lines(chomp: true)
    assert_sane(segment)
    assert_sampled("Object#job", segment)
  end

  def test_what_needs_a_recording_says_so
    out = run_program(<<~'RUBY')
      calls = [:stop, :pause, :resume]
      ask = -> { calls.each { |name| puts problem { Pitwall.public_send(name) } } }
      ask.call
      start
      puts problem { Pitwall.resume }
      stop
      ask.call
      record {}
    RUBY
    lines = out.lines(chomp: true)
    assert_equal 7, lines.size
    assert_equal ["StateError"], lines.map { |line| line[/\A\w+/] }.uniq
    assert_equal lines[0, 3], lines[4, 3]
    assert_sane(segment)
  end

  def test_nested_blocks_are_refused_and_the_outer_one_goes_on
    out = run_program(<<~'RUBY')
      def job = burn(0.1)
      record { puts problem { record("b.pit") { puts "never" } }; job }
    RUBY
    assert_match(/\AStateError: already recording/, out)
    assert_equal 1, out.lines.size
    assert_sampled("Object#job", segment)
  end

  def test_one_recording_after_the_other
    run_program(<<~'RUBY')
      def early = burn(0.1)
      def late = burn(0.1)
      record { early }
      record("b.pit") { late }
      record("c.pit") {}
    RUBY
    %w[a b c].each { |name| assert_sane(segment("#{name}.pit")) }
    assert_sampled("Object#early", segment)
    refute_sampled("Object#early", segment("b.pit"))
    assert_sampled("Object#late", segment("b.pit"))
  end

  def test_a_hundred_recordings_leave_nothing_behind
    out = run_program(<<~'RUBY')
      count = -> { %w[fd task].map { |kind| Dir.children("/proc/self/#{kind}").size } << File.read("/proc/self/timers").lines.size }
      idle = Thread.new { sleep }
      record {}
      # A joined thread may be in the list for a moment.
      before = Array.new(10) { sleep(0.01); count.call }.min
      100.times { record { 1.to_s } }
      1000.times { count.call == before ? break : sleep(0.05) }
      p before == count.call || [before, count.call]
    RUBY
    assert_equal "true\n", out
  end

  def test_started_and_stopped_in_trap_handlers
    out = run_program(<<~'RUBY')
      def job = burn(0.1)
      trap("USR1") { start }
      trap("USR2") { stop }
      Process.kill(:USR1, $$)
      job
      Process.kill(:USR2, $$)
      p Pitwall.recording?
    RUBY
    assert_equal "false\n", out
    assert_sane(segment)
    assert_sampled("Object#job", segment)
  end

  def test_the_block_is_left_in_every_way
    out = run_program(<<~'RUBY')
      def returning = record("return.pit") { return :returned }
      def raising = record("raise.pit") { raise IOError, "mine" }
      p returning
      p((raising rescue $!))
      p(catch(:out) { record("throw.pit") { throw :out, :thrown } })
      p(record("break.pit") { break :broken })
      p record("next.pit") { next :continued }.value
      thread = Thread.new { record("kill.pit") { sleep } }
      sleep 0.01 until Pitwall.recording? && thread.stop?
      thread.kill.join
      p Pitwall.recording?
    RUBY
    assert_equal [":returned", "#<IOError: mine>", ":thrown", ":broken", ":continued", "false"], out.lines(chomp: true)
    %w[return raise throw break next kill].each { |name| assert_sane(segment("#{name}.pit")) }
  end

  def test_exit_and_abort_inside_the_block_stop_it
    { "exit 3" => 3, "abort" => 1, "raise Interrupt" => :INT, "Process.kill(:TERM, $$); sleep" => :TERM }.each do |ending, expected|
      status = attempt("def job = burn(0.1)\nrecord { job; #{ending} }").status
      assert_equal expected, status.exitstatus || Signal.signame(status.termsig).to_sym, ending
      assert_sane(segment)
      assert_sampled("Object#job", segment)
    end
  end

  def test_an_end_without_stop_stops_it
    run_program("def job = burn(0.1)\nstart; job")
    assert_sane(segment)
    assert_sampled("Object#job", segment)
  end

  def test_stopped_by_another_thread_than_started_it
    run_program("def job = burn(0.1)\nThread.new { start }.join; job; Thread.new { stop }.join")
    assert_sane(segment)
    assert_sampled("Object#job", segment)
  end

  def test_only_the_main_ractor_starts
    out = run_program(<<~'RUBY', options: ["-W0"])
      value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
      puts value.call(Ractor.new { Pitwall.start(record: "b.pit") rescue $!.class.name })
    RUBY
    assert_match(/CannotMeasure|Ractor::/, out)
    refute_path_exists file("b.pit")
  end

  # --- pause and resume ---

  def test_time_while_paused_is_in_no_view
    run_program(<<~'RUBY')
      def early = burn(0.25)
      def between = burn(0.8)
      def late = burn(0.25)
      start
      early
      Pitwall.pause
      between
      puts problem { Pitwall.pause }, problem { start }, Pitwall.recording?
      Pitwall.resume
      late
      stop
      start("b.pit")
      Pitwall.pause
      stop
      puts problem { stop }
    RUBY
    segments = read.segments
    assert_equal 2, segments.size
    segments.each { |part| assert_sane(part) }
    assert_equal [{ "reason" => "pause" }, { "reason" => "stop" }], segments.map(&:tail)
    assert_sampled("Object#early", segments[0])
    assert_sampled("Object#late", segments[1])
    refute_sampled("Object#between", segments)
    assert_operator methods_of(segments, :cpu).values.map(&:total).max, :<, 700_000_000
    assert_sane(segment("b.pit"))
  end

  def test_wrong_calls_while_paused
    out = run_program("start; Pitwall.pause; puts problem { Pitwall.pause }, problem { start }, Pitwall.recording?; Pitwall.resume; stop")
    assert_equal %w[StateError StateError false], out.lines.map { |line| line[/\A\w+/] }
  end

  # --- settings and places ---

  def test_bad_settings_are_refused_in_one_line
    bad = ["interval_ns: 0", "interval_ns: 99_999", "interval_ns: 1_000_000_001", "interval_ns: 1.5e6", "interval_ns: nil", "interval_ns: '1ms'",
           "flush_ns: 1", "flush_ns: 10**18", "flush_ns: nil", "mode: :wild", "mode: nil", "signal: 'TERM'", "signal: 9", "speed: 3"]
    out = run_program("[#{bad.map { |setting| "{#{setting}}" }.join(",")}].each { |s| puts problem { start(**s) } }\n" \
                      "p Dir.children('.').grep(/pit\\z/), Pitwall.recording?; record {}")
    lines = out.lines(chomp: true)
    assert_equal ["[]", "false"], lines.pop(2)
    assert_equal bad.size, lines.size, out
    bad.zip(lines) { |setting, line| assert_match(/\AUsageError: .*(choose|known are) /, line, setting) }
    assert_sane(segment)
  end

  def test_places_that_cannot_be_written_are_named
    Dir.mkdir(file("folder"))
    File.write(file("plain"), "")
    File.mkfifo(file("fifo")) # nobody reads it
    places = %w[folder no/such/folder/a.pit plain/a.pit /proc/pitwall.pit /dev/full fifo]
    out = run_program("#{places.inspect}.each { |place| puts problem { start(place) } }; p Pitwall.recording?; record {}")
    lines = out.lines(chomp: true)
    assert_equal "false", lines.pop
    places.zip(lines) { |place, line| assert_match(/\AUsageError: #{Regexp.escape(File.expand_path(place, @dir))}: cannot write the recording: [A-Z]/, line) }
    assert_path_exists "/dev/full"
    assert_sane(segment)
  end

  # The disk fills up while it records: the program goes on, the counters tell, and what was flushed is good.
  FILL = <<~'RUBY'
    names = (0...400).map { |n| "method_with_a_rather_long_and_ever_different_name_#{n}_#{rand(10**9)}" }
    # One way through many methods after the other: new stacks all the time.
    names.each { |name| eval("def #{name} = burn(0.001)") }
    path = ENV.fetch("PLACE", "a.pit")
    start(path, flush_ns: 10_000_000)
    limit = now + 200
    size = -1
    until size == File.size(path) || now > limit # it stopped growing
      size = File.size(path)
      300.times { send(names.sample) }
    end
    puts stop.counters.fetch(:write_error), burn(0.01).inspect
  RUBY

  # Told from a process that was killed.
  def assert_unwritten(why)
    assert_equal [:unwritten], read.warnings.map(&:code)
    assert_match(/\Aprocess \d+ could not write its recording to the end \(#{why}\): it holds \S+ s of \S+ s, complete to the last flush\z/, read.warnings.first.message)
    holds, whole = read.segments.first.stats.values_at("elapsed_ns", "unwritten_until_ns")
    assert_operator holds.to_i, :<, whole
  end

  def test_a_file_that_may_not_grow
    out = run_program("Process.setrlimit(:FSIZE, 16_384)\n#{FILL}")
    assert_equal [Errno::EFBIG::Errno.to_s, "nil"], out.lines(chomp: true)
    assert_unwritten "File too large: ulimit -f, or max_bytes"
    assert_sampled("Object#burn", read.segments)
  end

  # The first write of the recording that fails is that of stop, in the program's own thread.
  def test_a_file_that_may_not_grow_at_stop
    out = run_program(<<~'RUBY')
      names = (0...100).map { |n| "method_with_a_long_name_#{n}_#{rand(10**9)}" }
      names.each { |name| eval("def #{name} = burn(0.002)") }
      start(flush_ns: 60_000_000_000)
      names.each { |name| send(name) }
      Process.setrlimit(:FSIZE, File.size("a.pit") + 100)
      puts stop.counters.fetch(:write_error), burn(0.01).inspect
    RUBY
    assert_equal [Errno::EFBIG::Errno.to_s, "nil"], out.lines(chomp: true)
    assert_unwritten "File too large: ulimit -f, or max_bytes"
  end

  def test_a_full_disk
    skip "mounting a small file system needs root" unless system("unshare --mount true", err: File::NULL, out: File::NULL)
    Dir.mkdir(file("small"))
    script = 'mount -t tmpfs -o size=16k none small && "$@" && cp small/a.pit .'
    out = run_program(FILL, wrapper: ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"], env: { "PLACE" => "small/a.pit" })
    assert_equal [Errno::ENOSPC::Errno.to_s, "nil"], out.lines(chomp: true)
    assert_unwritten "No space left on device: make room"
  end

  def test_closed_standard_streams_are_never_replaced
    skip "needs the system call's number" unless RUBY_PLATFORM.start_with?("x86_64-linux")
    run_program(<<~'RUBY', options: ["-W0"])
      at_exit { File.write("verdict", $verdict.inspect) }
      3.times { |fd| syscall(3, fd) } # close(2): STDOUT.close leaves the descriptor open
      def job = burn(0.1)
      record do
        job
        $verdict = Dir.children("/proc/self/fd").map(&:to_i).select { |fd| fd < 3 && File.readlink("/proc/self/fd/#{fd}").end_with?(".pit") }
      end
    RUBY
    assert_equal "[]", File.read(file("verdict"))
    assert_sane(segment)
    assert_sampled("Object#job", segment)
  end

  def test_a_start_with_closed_standard_streams
    attempt("def job = burn(0.1)\nrecord { job }", wrapper: ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"])
    assert_sane(segment)
    assert_sampled("Object#job", segment)
  end

  def test_the_files_mode_and_descriptor_are_the_programs_own_business
    out = run_program(%q(record { puts File.stat("a.pit").mode.to_s(8); system("ls", "-l", "/proc/self/fd") }))
    assert_equal "100600", out.lines(chomp: true).first
    refute_match(/\.pit/, out)
  end

  # --- ends that run no at_exit ---

  def test_readable_after_kill
    assert_equal 9, run_until_flush("Process.kill(:KILL, $$); sleep").status.termsig
    assert_readable_to_the_last_flush
  end

  def test_readable_after_exit!
    assert_equal 7, run_until_flush("exit! 7").status.exitstatus
    assert_complete("exit!")
  end

  def test_readable_after_exec
    result = run_until_flush(%q(exec("echo", "done")))
    assert_equal ["done\n", "", 0], [result.out, result.err, result.status.exitstatus]
    assert_complete("exec")
  end

  def test_readable_after_a_segmentation_fault
    result = run_until_flush("Process.setrlimit(:CORE, 0); Process.kill(:SEGV, $$); sleep")
    assert_includes [11, 6], result.status.termsig
    assert_readable_to_the_last_flush
  end

  def test_readable_after_an_abort
    assert_equal 6, run_until_flush("Process.setrlimit(:CORE, 0); Process.kill(:ABRT, $$); sleep").status.termsig
    assert_readable_to_the_last_flush
  end

  # An exec whose file is missing comes back.
  def test_goes_on_after_an_exec_that_failed
    run_program("def job = burn(0.1)\nstart; exec('/no/such/program') rescue job; stop")
    assert_sane(read.segments.last)
    assert_sampled("Object#job", read.segments.last)
  end

  # --- fork ---

  def test_a_forked_child_has_a_recording_of_its_own
    out = run_program(<<~'RUBY')
      def before = burn(0.1)
      def in_parent = burn(0.1)
      def in_child = burn(0.3)
      start(keep_argv: true)
      before
      puts pid = fork { in_child }
      Process.wait(pid)
      in_parent
      stop
    RUBY
    child = segment("a-#{out.to_i}.pit")
    [segment, child].each { |part| assert_sane(part) }
    assert_sampled("Object#before", segment)
    assert_sampled("Object#in_parent", segment)
    refute_sampled("Object#in_child", segment)
    assert_sampled("Object#in_child", child)
    refute_sampled("Object#before", child)
    refute_sampled("Object#in_parent", child)
    assert_equal [out.to_i, segment.header.pid], [child.header.pid, child.header.ppid]
    assert_equal segment.header.settings, child.header.settings
    assert_equal [1], child.threads.keys
  end

  def test_children_that_end_without_at_exit
    out = run_program(<<~'RUBY', options: ["-W0"])
      def job = burn(0.1)
      start(flush_ns: 50_000_000)
      pids = ["exit! 0", "Process.kill(:KILL, $$); sleep", "exec('true')"].map do |ending|
        fork { job; flushed("a-#{$$}.pit", method: "Object#job"); eval(ending) }
      end
      pids.each { |pid| Process.wait(pid) }
      p pids
      stop
    RUBY
    assert_sane(segment)
    exited, killed, replaced = eval(out).map { |pid| "a-#{pid}.pit" }
    assert_complete("exit!", exited)
    assert_readable_to_the_last_flush(killed)
    assert_complete("exec", replaced)
  end

  # Most children exec at once; they are no recordings.
  def test_children_that_exec_at_once_leave_no_file
    run_program(<<~'RUBY')
      start
      system("true")
      `true`
      Process.wait(spawn("true"))
      IO.popen("true", &:read)
      stop
    RUBY
    assert_empty child_recordings
    assert_sane(segment)
  end

  def test_children_of_children_and_of_threads
    out = run_program(<<~'RUBY')
      def job = burn(0.1)
      start
      busy = Thread.new { loop { burn(0.01) } }
      pid = Thread.new { fork { job; Process.wait(fork { job }) } }.value
      Process.wait(pid)
      busy.kill.join
      puts pid
      stop
    RUBY
    child = out.to_i
    recordings = Dir.children(@dir).grep(/\Aa-#{child}.*\.pit\z/).sort
    assert_equal 2, recordings.size, recordings.inspect
    recordings.each do |name|
      assert_sane(segment(name))
      assert_sampled("Object#job", segment(name))
    end
    assert_sane(segment)
  end

  def test_a_fork_without_a_block
    run_program(<<~'RUBY')
      def in_child = burn(0.1)
      start
      if (pid = fork)
        Process.wait(pid)
      else
        in_child
        exit
      end
      stop
    RUBY
    assert_equal 1, child_recordings.size
    assert_sampled("Object#in_child", segment(child_recordings.first))
    assert_sane(segment)
  end

  def test_a_child_may_stop_and_start_as_it_likes
    run_program(<<~'RUBY')
      def job = burn(0.1)
      start
      pid = fork do
        stop
        record("own.pit") { job }
      end
      Process.wait(pid)
      stop
    RUBY
    assert_sane(segment("own.pit"))
    assert_sampled("Object#job", segment("own.pit"))
    assert_sane(segment)
  end

  def test_a_daemon_is_recorded_on
    result = attempt(<<~'RUBY')
      def before = burn(0.1)
      def in_daemon = burn(0.1)
      start
      before
      Process.daemon(true, true)
      in_daemon
      stop
      File.write("done.tmp", $$.to_s)
      File.rename("done.tmp", "done")
    RUBY
    assert_equal [0, ""], [result.status.exitstatus, result.err]
    eventually { File.exist?(file("done")) }
    daemon = segment("a-#{File.read(file("done"))}.pit")
    assert_sane(daemon)
    assert_sampled("Object#in_daemon", daemon)
    assert_nil segment.tail
  end

  # A child of a program that pauses must not write into its parent's file.
  def test_a_child_of_a_paused_program_leaves_the_parents_file_alone
    run_program(<<~'RUBY')
      def in_child = burn(0.1)
      start
      Pitwall.pause
      Process.wait(fork { Pitwall.resume; in_child; stop })
      Pitwall.resume
      stop
    RUBY
    assert_equal 2, read.segments.size
    assert_equal 1, read.segments.map { |part| part.header.pid }.uniq.size
    assert_equal 1, child_recordings.size
    assert_sampled("Object#in_child", segment(child_recordings.first))
  end

  # --- rough weather; test/stress does it for longer ---

  def test_the_collector_at_every_allocation
    run_program(<<~'RUBY')
      record(interval_ns: 100_000) do
        GC.stress = true
        25.times { |i| [i.to_s].each { |s| eval("def m#{i} = 1; m#{i}; '#{s}'") } }
        Thread.new { Array.new(10) { |i| "x#{i}" } }.join
        GC.stress = false
      end
    RUBY
    assert_sane(segment)
  end

  # A tick can make IO.select start over. IO.select then allocates objects, and with GC.stress each object causes a
  # collection, which takes longer than the interval.
  def test_a_wait_that_begins_again_gets_on_at_last
    collections = run_program(<<~'RUBY').to_i
      kept = Array.new(50_000) { |i| "object #{i}" }
      reader, writer = IO.pipe
      writer << "x"
      record(interval_ns: 100_000) do
        before = GC.count
        GC.stress = true
        5.times { IO.select([reader]) }
        GC.stress = false
        puts GC.count - before
      end
    RUBY
    assert_sane(segment)
    assert_operator collections, :<, 500
  end

  # With native frames, taking a stack this deep takes longer than the interval.
  def test_a_program_gets_on_with_deep_stacks
    run_program(<<~'RUBY')
      ONE = [1]
      def deep(n, &work) = n.zero? ? work.call : ONE.each { deep(n - 1, &work) }
      reader, writer = IO.pipe
      record(interval_ns: 100_000) do
        deep(1_000) do
          burn(0.1)
          2_000.times { writer.syswrite("x"); reader.sysread(1) }
        end
      end
    RUBY
    assert_sane(segment)
    assert_sampled("Object#burn", segment)
  end

  def test_compaction
    run_program(<<~'RUBY')
      exit unless GC.respond_to?(:compact) && (GC.compact rescue false)
      record(interval_ns: 100_000) do
        20.times { |i| eval("def c#{i}(n) = Array.new(n) { |k| k.to_s }; c#{i}(5_000)"); GC.compact }
        GC.auto_compact = true
        200.times { |i| eval("def d#{i}(n) = Array.new(n) { |k| k.to_s }; d#{i}(2_000)") }
        GC.start
      end
    RUBY
    assert_sane(segment)
    assert_empty segment.frames.values.map(&:name).grep(/unreadable/)
  end

  def test_many_short_threads
    run_program(<<~'RUBY')
      record do
        300.times.each_slice(10) { |slice| slice.map { Thread.new { 10.to_s } }.each(&:join) }
        20.times { Thread.new { sleep }.tap { |t| Thread.pass }.kill.join }
        10.times { Thread.new { Thread.current.report_on_exception = false; raise "x" }.join rescue nil }
      end
    RUBY
    assert_sane(segment)
  end
end
