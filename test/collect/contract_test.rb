# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/collector_contract"
require_relative "../support/own_walk"

# The contract of all collectors, once for each of them.
class SignalCollectorTest < Minitest::Test
  include CollectorContract

  def settings = { mode: "signal" }

  def test_the_other_signal
    run_program("def job = burn(0.05)\nrecord(signal: 'WINCH') { job }")
    assert_sane(segment)
    assert_sampled("Object#job", segment)
    assert_equal "WINCH", segment.header.settings["signal"]
  end

  # A limit on pending signals counts timers, too: refused ones are told, and the threads still appear.
  def test_timers_that_the_system_refuses_are_counted
    run_program(<<~'RUBY')
      Process.setrlimit(:SIGPENDING, 0)
      record { Thread.new { burn(0.01) }.join; burn(0.02) }
    RUBY
    assert_sane(segment)
    assert_equal 2, segment.stat("timers_refused")
    assert_equal 0, segment.stat("ticks")
    assert_equal 2, threads_of(segment).size
    assert_operator methods_of(segment, :cpu).values.sum(&:own), :>=, 29_000_000
  end
end

# Signals, with native frames.
class NativeCollectorTest < Minitest::Test
  include CollectorContract

  def settings = { mode: "signal", native: true }

  def test_says_whether_native_frames_were_recorded
    run_program("record { burn(0.05) }")
    assert_equal OwnWalk.used?, segment.header.notes.grep(/native frames are not recorded/).empty?
    assert_equal OwnWalk.used?, segment.stat("native_stacks").positive?
  end
end

# What modes without signals have in common.
module SignalFree
  # No signal is used, no handler installed, no timer made.
  def test_uses_no_signal
    run_program(<<~'RUBY')
      # Signals 32 and 33 are the C library's, for its threads.
      masks = -> { File.readlines("/proc/self/status").grep(/\ASig(Cgt|Ign|Blk)/) { |line| line[/\h{16}/].hex & 0x7fff_ffff } }
      timers = -> { File.read("/proc/self/timers").lines.size }
      before = [masks.call, timers.call]
      record { abort "signals" unless [masks.call, timers.call] == before }
    RUBY
  end
end

class SafepointCollectorTest < Minitest::Test
  include CollectorContract
  include SignalFree

  def settings = { mode: "safepoint" }

  def test_says_that_it_is_biased
    run_program("record { burn(0.01) }")
    assert_equal "safepoint", segment.header.mode
    assert_match(/safepoint/, segment.header.notes.join("\n"))
  end
end

class OutsideCollectorTest < Minitest::Test
  include CollectorContract
  include SignalFree

  # On others the same is asked of what takes its place.
  KNOWN = OwnWalk.used?

  def settings = { mode: "outside" }

  undef_method :test_uses_no_signal unless KNOWN

  def test_says_what_was_used_and_why
    run_program("record { burn(0.01) }")
    assert_equal KNOWN ? "outside" : "signal", segment.header.mode
    assert_equal KNOWN, segment.header.notes.grep(/outside/).empty?
  end

  # Where the kernel refuses to copy memory, signals do it, and the recording says why.
  REFUSED = <<~'C'
    #include <errno.h>
    #include <sys/uio.h>
    ssize_t process_vm_readv(pid_t p, const struct iovec *l, unsigned long n, const struct iovec *r, unsigned long m, unsigned long f) { errno = EPERM; return -1; }
  C

  def test_signals_take_over_where_reading_is_refused
    return pass unless KNOWN && !ENV["TEST_PRELOAD"] && system("cc", "--version", out: File::NULL, err: File::NULL)

    File.write(file("refused.c"), REFUSED)
    assert system("cc", "-shared", "-fPIC", "-o", file("refused.so"), file("refused.c"))
    run_program("def job = burn(0.05)\nrecord { job }", env: { "LD_PRELOAD" => file("refused.so") })
    assert_sane(segment)
    assert_sampled("Object#job", segment)
    assert_equal "signal", segment.header.mode
    assert_match(/outside does not work here \(process_vm_readv is refused \(Operation not permitted\)\): signals were used/, segment.header.notes.join)
  end

  # A thread that waits is charged for the time without being read: one look at it, however long.
  def test_a_stack_that_stands_is_read_once
    return pass unless KNOWN

    run_program("reader, writer = IO.pipe\n5.times { Thread.new { reader.read(1) } }\nsleep 0.05\nstart(interval_ns: 100_000)\nsleep 0.5\nstop")
    assert_sane(segment)
    assert_operator segment.stat("ticks"), :<, 100
    threads_of(segment).each { |row| assert_operator row.wall, :>=, 450_000_000, row.name }
  end

  # Under M:N scheduling Ruby's threads have no native thread of their own, nor its stack.
  def test_threads_that_change_native_threads
    return pass unless KNOWN && RUBY_VERSION >= "3.3"

    run_program(<<~'RUBY', env: { "RUBY_MN_THREADS" => "1" })
      def job = burn(0.1)
      def doze = sleep(0.05)
      record(interval_ns: 200_000) do
        Array.new(4) { |n| Thread.new { Thread.current.name = "t#{n}"; job; doze; 50.times { Thread.pass }; job } }.each(&:join)
      end
    RUBY
    assert_sane(segment)
    %w[Object#job Object#doze].each { |name| assert_sampled(name, segment) }
    assert_equal "outside", segment.header.mode
  end
end

# Changes of caches, beside samples. Needs a known layout.
class CachesCollectorTest < Minitest::Test
  include CollectorContract

  # caches_hazards_test.rb has a shorter one.
  undef_method :test_the_collector_at_every_allocation

  def settings = { mode: "signal", collectors: { "caches" => {} } }

  def test_says_what_was_watched
    run_program("record { Object.define_method(:late) { 1 }; burn(0.01) }")
    assert_equal "lines", segment.caches_watched
    assert_equal ["Object#late"], segment.cache_changes.map(&:subject)
  end
end if OwnWalk.used?
