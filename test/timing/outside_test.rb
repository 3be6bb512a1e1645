# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../support/own_walk"

# How little a reader on another core does where nothing happens, and whose the time is all the same.
class OutsideTimingTest < Minitest::Test
  include RecordedProgram

  # As OutsideCollectorTest has it.
  KNOWN = OwnWalk.used?

  def settings = { mode: "outside" }

  # Where all threads wait the reader rests, and what they waited is theirs all the same.
  def test_an_idle_program_is_left_alone
    return pass unless KNOWN && RUBY_VERSION >= "3.2"

    out = run_program(<<~'RUBY')
      def doze(seconds) = sleep(seconds)
      def nap = sleep(0.001)
      def job = burn(0.03)
      3.times { |n| Thread.new { Thread.current.name = "idle #{n}"; sleep } }
      wakings = lambda do
        reader = Dir["/proc/self/task/*"].find { |task| File.read("#{task}/comm").strip == "pitwall reader" }
        File.read("#{reader}/status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i
      end
      start(interval_ns: 100_000)
      doze(0.3)
      before = wakings.call
      doze(1)
      puts wakings.call - before
      3.times { job; doze(0.1); 20.times { nap } }
      Thread.new { Thread.current.name = "late"; job }.join
      stop
    RUBY
    assert_operator out.to_i, :<, 3000, "of 10000 ticks"
    assert_sane(segment)
    found = methods_of(segment, :wall)
    assert_operator found.fetch("Object#doze").total, :>=, 1_580_000_000
    assert_operator found.fetch("Object#job").total, :>=, 100_000_000
    %w[0 1 2].each { |n| assert_operator threads_of(segment).find { |row| row.name == "idle #{n}" }.wall, :>=, 1_650_000_000 }
    cpu = methods_of(segment, :cpu)
    assert_operator cpu.fetch("Object#doze").total, :<=, 60_000_000
    assert_operator cpu.fetch("Object#job").total, :>=, 100_000_000
  end

  # What each thread may burn by a clock that threads share is not known; together they burn what the process does.
  def test_threads_that_change_native_threads
    return pass unless KNOWN && RUBY_VERSION >= "3.3"

    run_program(<<~'RUBY', env: { "RUBY_MN_THREADS" => "1" })
      def job = burn(0.1)
      def doze = sleep(0.05)
      record(interval_ns: 200_000) do
        Array.new(4) { |n| Thread.new { Thread.current.name = "t#{n}"; job; doze; 50.times { Thread.pass }; job } }.each(&:join)
      end
    RUBY
    all = segment.stat("process_cpu_ns") - segment.stat("own_cpu_ns")
    assert_in_delta all, threads_of(segment).sum(&:cpu), all * 0.15 + 20_000_000
  end
end
