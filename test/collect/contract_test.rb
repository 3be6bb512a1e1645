# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/collector_contract"

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

class SafepointCollectorTest < Minitest::Test
  include CollectorContract

  def settings = { mode: "safepoint" }

  def test_says_that_it_is_biased
    run_program("record { burn(0.01) }")
    assert_equal "safepoint", segment.header.mode
    assert_match(/safepoint/, segment.header.notes.join("\n"))
  end

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
