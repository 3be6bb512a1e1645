# frozen_string_literal: true

require_relative "../test_helper"
require "etc"
require "rbconfig"
require "tmpdir"
require "pitwall/bench/execution"

# One process under measurement: how it ends, what it used, and that nothing of it stays behind.
class ExecutionTest < Minitest::Test
  Execution = Pitwall::Bench::Execution

  def execute(*command, **options) = Execution.new(command, **options).call

  def ruby(code, **options) = execute(RbConfig.ruby, "--disable-gems", "-e", code, **options)

  def test_what_a_process_used
    finished = ruby("x = 'a' * 60_000_000; 300_000.times { }")
    assert finished.success?
    used = finished.usage
    assert_operator used["wall"], :>, 5_000_000
    assert_operator used["max_rss"], :>, 60_000_000
    assert_operator used["user"] + used["system"], :>, 5_000_000
    assert_operator used["minor_faults"], :>, 1000
  end

  # A process forked by this test's own Ruby would count that one's memory as its peak.
  def test_the_peak_is_the_commands_own
    ballast = "x" * 80_000_000
    assert_operator execute("/bin/true").usage["max_rss"], :<, 20_000_000
    assert_equal 80_000_000, ballast.bytesize
  end

  def test_ends
    assert_equal [3, nil, nil], ruby("exit 3").then { |finished| [finished.exit, finished.signal, finished.error] }
    assert_equal [nil, 9], ruby("Process.kill(:KILL, $$); sleep").then { |finished| [finished.exit, finished.signal] }
    missing = execute("/no/such/command")
    assert_equal [127, Errno::ENOENT::Errno], [missing.exit, missing.error]
    assert_equal [126, Errno::EACCES::Errno], execute(__FILE__).then { |finished| [finished.exit, finished.error] }
    assert_match(/oh no/, ruby("abort 'oh no'").errors)
  end

  def test_the_report_descriptor_and_nothing_else
    finished = ruby("IO.new(3, 'w').puts('one', 'two'); puts Dir.children('/proc/self/fd').size; " \
                    "warn STDIN.read.inspect")
    assert_equal %w[one two], finished.lines
    assert_equal "\"\"\n", finished.errors
    assert_equal 100_000, ruby("IO.new(3, 'w').write(\"x\\n\" * 100_000)").lines.size
  end

  def test_a_core_of_its_own
    skip "one core" if Etc.nprocessors < 2
    program = "IO.new(3, 'w').puts File.read('/proc/self/status')[/^Cpus_allowed_list:\\s*(\\S+)/, 1]"
    assert_equal ["1"], ruby(program, cpu: 1).lines
  end

  def test_what_takes_too_long_is_ended_with_all_it_started
    mark = "pitwall-test-#{Process.pid}-#{rand(1 << 30)}"
    finished = ruby("trap(:TERM) {}; fork { trap(:TERM) {}; sleep }; $0 = '#{mark}'; loop {}", timeout: 0.5)
    assert finished.timed_out
    refute finished.success?
    assert_gone(mark)
  end

  def test_what_a_process_leaves_behind_is_ended
    mark = "pitwall-test-#{Process.pid}-#{rand(1 << 30)}"
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    finished = ruby("fork { $0 = '#{mark}'; sleep 600 }; sleep 0.2; IO.new(3, 'w').puts 'done'")
    assert_equal [0, ["done"]], [finished.exit, finished.lines]
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, :<, 300
    assert_gone(mark)
  end

  def test_an_interrupt_ends_it
    mark = "pitwall-test-#{Process.pid}-#{rand(1 << 30)}"
    thread = Thread.new do
      Thread.current.report_on_exception = false
      ruby("$0 = '#{mark}'; sleep")
    end
    sleep 0.05 until running(mark).any? || !thread.alive?
    thread.raise(Interrupt)
    assert_raises(Interrupt) { thread.join }
    assert_gone(mark)
  end

  # Before anybody follows the process.
  def test_an_interrupt_at_its_start_ends_it
    mark = "pitwall-test-#{Process.pid}-#{rand(1 << 30)}"
    seat = Object.new
    seat.define_singleton_method(:descriptors) { {} }
    seat.define_singleton_method(:started) { Thread.current.raise(Interrupt) }
    assert_raises(Interrupt) { execute(RbConfig.ruby, "-e", "$0 = '#{mark}'; sleep", seat: seat) }
    assert_gone(mark)
  end

  def test_a_missing_folder
    error = assert_raises(Pitwall::CannotMeasure) { execute("/bin/true", dir: "/no/such/folder") }
    assert_match(%r{/no/such/folder}, error.message)
  end

  private

  def running(mark)
    Dir.glob("/proc/[0-9]*/cmdline").select do |file|
      (File.read(file) rescue "").include?(mark) && file[/\d+/].to_i != Process.pid
    end
       .reject { |file| (File.read(file.sub("cmdline", "status")) rescue "State: Z")[/^State:\s*(\w)/, 1] == "Z" }
  end

  def assert_gone(mark)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
    sleep 0.02 until (left = running(mark)).empty? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    assert_empty left
  end
end
