# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/recorded_program"

# What Pitwall assumes of Ruby beyond its documentation. When one of these fails on a new Ruby, look at the named file before
# anything else.
class RubyAssumptionsTest < Minitest::Test
  include RecordedProgram

  THREAD_EVENTS = RUBY_VERSION >= "3.2"

  # safepoint_ticker.c, drain.c: a job may be asked for by a thread that Ruby does not know, and runs soon in one it does.
  def test_postponed_jobs_can_be_triggered_by_foreign_threads
    run_program("def job = burn(0.2)\nrecord(mode: 'safepoint') { job }")
    assert_operator segment.stat("captures"), :>, 20
    assert_sampled("Object#job", segment)
  end

  # naming.c: the same for names; without it, only stop would name frames, and a killed program's would have none.
  def test_jobs_name_frames_while_the_program_runs
    attempt(<<~'RUBY')
      def job = burn(0.02)
      start(flush_ns: 50_000_000)
      job
      flushed
      Process.kill(:KILL, $$)
      sleep
    RUBY
    assert_sampled("Object#job", read.segments)
  end

  # signal_ticker.c: rb_profile_frames in a handler reads the interrupted thread's own stack, with or without the GVL.
  def test_stacks_of_threads_without_the_gvl_are_their_own
    run_program(<<~'RUBY')
      def dozing = sleep
      def reading(io) = io.read(1)
      def popping(queue) = queue.pop
      reader, writer = IO.pipe
      Thread.new { dozing }
      Thread.new { reading(reader) }
      Thread.new { popping(Queue.new) }
      sleep 0.05
      def working = burn(0.1)
      start
      working
      stop
      writer.close
    RUBY
    { "dozing" => "Kernel#sleep", "reading" => "IO#read", "popping" => "Thread::Queue#pop" }.each do |method, leaf|
      assert_sampled("Object##{method}", segment)
      assert_sampled(leaf, segment)
    end
    stacks = threads_of(segment).to_h { |row| [row.id, tree(segment.with(tallies: segment.tallies.select { |t| t.thread_id == row.id }))] }
    mixed = stacks.values.count { |tree| %w[dozing reading popping working].count { |name| tree.methods.each_with_index.any? { |m, i| m.name == "Object##{name}" && tree.total_by_method(:captures)[i].positive? } } != 1 }
    assert_equal 0, mixed
  end

  # thread_events.c: begin fires in the new thread before its block, end after it, in it.
  def test_order_of_thread_events
    events = []
    trace = TracePoint.new(:thread_begin, :thread_end) { |point| events << [point.event, Thread.current] }
    thread = nil
    trace.enable # with a block it would see this thread only
    thread = Thread.new { events << [:block, Thread.current] }.tap(&:join)
    trace.disable
    assert_equal [[:thread_begin, thread], [:block, thread], [:thread_end, thread]], events.select { |_, one| one == thread }
  end

  # collect/session.rb, compat.rb: the native id is the kernel's, known as soon as the thread has run.
  def test_native_thread_ids_are_the_kernels
    skip "not Linux" unless File.directory?("/proc/self/task")
    ids = Array.new(2) { Thread.new { [Thread.current.native_thread_id, Dir.exist?("/proc/self/task/#{Thread.current.native_thread_id}")] }.value }
    assert_equal [true, true], ids.map(&:last)
    assert_equal Process.pid, Thread.main.native_thread_id
  end

  # gc.c: marking and sweeping are told apart by Ruby's own events, in this order; each collection enters and exits.
  def test_gc_events_come_in_pairs
    run_program("record { 5.times { GC.start } }")
    assert_operator segment.stat("gc_count"), :>=, 5
    assert_operator segment.stats.dig("gc_ns", "marking"), :>, 0
    assert_operator segment.stats.dig("gc_ns", "sweeping"), :>, 0
  end

  # capture.c: what stands in control frames is T_IMEMO, of the kinds seen at load: nothing real is refused.
  def test_no_honest_frame_is_refused
    run_program(<<~'RUBY')
      class Shapes
        define_method(:by_block) { burn(0.01) }
        def method_missing(*) = burn(0.01)
        def respond_to_missing?(*) = true
        attr_accessor :plain
      end
      record(interval_ns: 100_000) do
        3.times do
          shapes = Shapes.new
          shapes.by_block
          shapes.missing
          shapes.method(:by_block).to_proc.call
          shapes.method(:by_block).unbind.bind_call(shapes)
          :by_block.to_proc.call(shapes)
          shapes.instance_exec { burn(0.01) }
          shapes.instance_eval("burn(0.01)")
          Shapes.class_eval { burn(0.01) }
          BasicObject.instance_method(:instance_eval).bind_call(shapes) { burn(0.01) }
          [3, 1, 2].sort_by { |x| burn(0.005); x }
          [1].lazy.map { |x| burn(0.01); x }.to_a
          eval("burn(0.01)", binding, "x", 1)
          at = TracePoint.new(:line) { }
          at.enable { burn(0.005) }
          ObjectSpace.each_object(Class).first(3)
          Comparable.instance_method(:clamp).bind_call(3, 1, 2)
          "abc".gsub(/b/) { |m| burn(0.005); m }
          Fiber.new { burn(0.005) }.resume
        end
      end
    RUBY
    assert_equal 0, segment.stat("refused_frames")
    assert_empty segment.frames.values.map(&:name).grep(/unreadable|unnamed|\A\?/)
    assert_sane(segment)
  end

  # recording.c: pthread_atfork handlers run for Process.daemon as well, which Process._fork does not see.
  def test_daemon_is_a_fork_without_underscore_fork
    skip "Process._fork is 3.1's and newer" unless Process.respond_to?(:_fork)
    out = run_program(<<~'RUBY')
      module Seen
        def _fork = super.tap { $seen = true }
      end
      Process.singleton_class.prepend(Seen)
      reader, writer = IO.pipe
      if fork
        writer.close
        print reader.read
        Process.wait
      else
        $seen = nil
        Process.daemon(true, true)
        writer.write($seen.inspect)
      end
    RUBY
    # When this says true one day, Ruby has changed, and daemons can be seen by either.
    assert_includes %w[nil true], out
  end

  # lib/pitwall/native.rb, session.rb: what is there before any library.
  def test_rbconfig_is_built_in_or_a_plain_file
    out, = Open3.capture2(CLEAN, RUBY, "--disable-gems", "-e", 'before = $LOADED_FEATURES.size; require "rbconfig"; p RbConfig::CONFIG["ruby_version"], $LOADED_FEATURES.size - before <= 1')
    assert_equal "true", out.lines.last.chomp
  end

  # signal_ticker.c: without a handler the signals we use are ignored, so a signal that arrives late does nothing.
  def test_our_signals_are_harmless_without_a_handler
    %w[URG WINCH].each { |name| assert run_program("Process.kill(:#{name}, $$); sleep 0.01; print :alive") == "alive", name }
  end

  # extconf.rb: thread events are found where the Ruby has them, and the recording says so. (On 3.1 other modes watch the GVL.)
  def test_thread_events_by_version
    run_program("record(mode: :outside) {}")
    assert_equal THREAD_EVENTS, segment.header.thread_states?
  end

  # clock.h: the kernel's encoding of a thread's CPU clock, checked against Ruby's own.
  def test_the_cpu_clock_of_a_thread_by_its_id
    skip "not Linux" unless RUBY_PLATFORM.include?("linux")
    limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.02
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    id = (~Thread.current.native_thread_id << 3) | 6
    by_id = Process.clock_gettime(id)
    own = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    assert_operator by_id, :<=, own
    assert_in_delta own, by_id, 0.01
    ended = Thread.new { Thread.current.native_thread_id }.tap(&:join).value
    gone = 0
    gone += 1 while Dir.exist?("/proc/self/task/#{ended}") && gone < 10_000_000
    begin
      Process.clock_gettime((~ended << 3) | 6)
    rescue Errno::EINVAL
      nil # refused, not undefined
    end
  end
end
