# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/recording_builder"
require "json"

# Threads of real programs that wait: those that wait for work are left out, those that wait within work are not.
class IdleCommandTest < Minitest::Test
  include CommandLine

  # Each thread's name says what its wait is. They all wait from their start to the program's end.
  WAITS = <<~'RUBY'
    require "monitor"
    require "socket"
    class Pool
      def initialize = (@lock, @free = Mutex.new, ConditionVariable.new)
      def checkout = @lock.synchronize { @free.wait(@lock, 60) }
      def with = yield(checkout)
    end
    $waiting = []
    # methods: a part of a regular expression, such as "sleep|wait". It matches the names of methods in which the thread
    #   waits.
    def waiting(name, methods, &code) = $waiting << [Thread.new { Thread.current.name = name; code.call }, methods]
    server, slow = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
    queue, full, pool, lock, monitor = Queue.new, SizedQueue.new(1), Pool.new, Mutex.new, Monitor.new
    full << 1
    lock.lock
    monitor.enter
    waiting("an empty queue", "pop") { queue.pop }
    waiting("accept", "accept") { server.accept }
    waiting("select", "select") { IO.select([server]) }
    $waiting << [Thread.new { Thread.current.name = "its own sleep"; loop { sleep 60 } }, "sleep"]
    waiting("a lock", "synchronize") { lock.synchronize { 1 } }
    waiting("a monitor", "synchronize") { monitor.synchronize { 1 } }
    waiting("a full queue", "push") { full.push(2) }
    waiting("a connection", "sleep|wait") { pool.with { 1 } }
    waiting("an answer", "gets") { TCPSocket.new("127.0.0.1", slow.addr[1]).gets }
    waiting("a child", "wait") { Process.wait($child = spawn("sleep", "60")) }
    Thread.pass until $waiting.all? { |thread, methods| thread.stop? && thread.backtrace.first =~ /\b(#{methods})'\z/ }
    Thread.new { Thread.current.name = "work"; 3_000_000.times { |i| i.to_s } }.join
    Process.kill(:KILL, $child)
    exit!(0) unless defined?(Pitwall)
  RUBY

  IDLE = ["accept", "an empty queue", "its own sleep", "select"].freeze
  COUNTED = ["a child", "a connection", "a full queue", "a lock", "a monitor", "an answer", "work"].freeze

  def test_who_waits_for_work_is_left_out_and_who_waits_within_work_is_not
    File.write(File.join(@dir, "waits.rb"), WAITS)
    finished = pitwall("profile", "--quiet", "--record", "x.pit", "--", RUBY, "waits.rb")
    assert_equal 0, finished.status.exitstatus, finished.err
    left_out = JSON.parse(pitwall("report", "x.pit", "--format", "json").out).fetch("idle_threads")
    assert_equal IDLE, left_out.sort & IDLE
    assert_empty left_out & COUNTED
    assert_empty JSON.parse(pitwall("report", "x.pit", "--format", "json", "--idle").out).fetch("idle_threads")
    waiting = JSON.parse(pitwall("report", "x.pit", "--format", "json").out).fetch("waiting")
    waits = waiting.fetch("by").map { |row| row["name"] }
    text = pitwall("report", "x.pit", "--limit", "1000", "--idle", "--state", "blocked").out
    ["Thread::Mutex#synchronize", "Monitor#synchronize", "Thread::SizedQueue#push", "IO#gets"].each do |name|
      assert_includes waits, name
      assert_includes text, name
    end
    refute_includes waits, "TCPServer#accept"
    text = pitwall("report", "x.pit", "--limit", "1000").out
    refute_includes text, "TCPServer#accept"
    assert_match(/idle threads left out \(they waited for work; --idle counts them\)/, text)
  end

  # What the report of a verb names, the verb takes.
  def test_profile_takes_idle
    program = "Thread.new { Queue.new.pop }; #{CommandLine.busy(0.3)}"
    told = pitwall("profile", "--record", "x.pit", "--", RUBY, "-e", program)
    assert_match(/idle threads left out \(they waited for work; --idle counts them\): \S/, told.err)
    counted = pitwall("profile", "--idle", "--record", "y.pit", "--", RUBY, "-e", program)
    assert_equal 0, counted.status.exitstatus, counted.err
    refute_match(/idle threads left out/, counted.err)
    assert_match(/Thread::Queue#pop/, counted.err)
    refused = pitwall("profile", "--idle", "--format", "html", "--out", "x.html", "--", RUBY, "-e", "1")
    assert_match(/the page has all rows and orders: leave out --idle/, refused.err)
  end

  # A thread without a name is called by its number, and found by what it is called.
  def test_a_thread_is_found_by_what_a_report_calls_it
    bytes = RecordingBuilder.new
    [4242, 5151].each do |pid|
      bytes.segment(pid: pid) do |segment|
        segment.thread(1, "main")
        segment.thread(11, "")
        segment.row(stack: [["Object#main"]], wall: 7_000, cpu: 7_000)
        segment.row(thread: 11, stack: [["Object#work"]], wall: pid, cpu: pid)
      end
    end
    File.binwrite(file("x.pit"), bytes.bytes)
    lines = pitwall("report", "x.pit", "--view", "threads").out.lines.map(&:strip)
    listed = lines.grep(/thread 11$/).map { |line| line[/\d+ thread 11$/] }
    assert_equal ["4242 thread 11", "5151 thread 11"], listed.sort
    { "thread 11" => 9_393, "11" => 9_393, "4242 thread 11" => 4_242, "5151 main" => 7_000 }.each do |name, wall|
      total = JSON.parse(pitwall("report", "x.pit", "--thread", name, "--format", "json").out)["total"]
      assert_equal wall * 1000, total, name
      exported = pitwall("export", "x.pit", "--thread", name, "--to", "speedscope", "--out", "-")
      assert_equal wall * 1000, JSON.parse(exported.out)["profiles"].sum { |profile| profile["weights"].sum }, name
    end
    assert_match(/no thread "12" in the recording; it has main, thread 11$/,
                 pitwall("report", "x.pit", "--thread", "12").err)
    ["running", "GVL wait", "waiting for the GVL", "off CPU"].each do |state|
      refute_match(/--state/, pitwall("report", "x.pit", "--state", state).err, state)
    end
  end
end
