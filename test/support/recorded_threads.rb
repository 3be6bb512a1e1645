# frozen_string_literal: true

require_relative "own_walk"
require_relative "recorded_program"

# Programs whose threads are looked at: whose time is whose, and in which state it was spent.
module RecordedThreads
  include RecordedProgram

  RUNNING, WAITING, BLOCKED, UNKNOWN, OFF_CPU = 0, 1, 2, 3, 4
  THREAD_EVENTS = RUBY_VERSION >= "3.2"
  # Signal mode watches the GVL of 3.1, where Ruby's layout is known.
  WATCHED = !THREAD_EVENTS && !OwnWalk.forced_unknown?

  # Is it known who waits?
  def states? = THREAD_EVENTS || (WATCHED && segment.header.mode != "outside")

  def rows = @rows ||= threads_of(segment)

  def row(name) = rows.find { |one| one.name == name } || flunk("no thread #{name} in #{rows.map(&:name)}")

  # Of a thread's time, how much was in these states (0.0 to 1.0).
  def share(row, *states) = row.states.values_at(*states).compact.sum.fdiv(row.wall)

  # The leaf that a state's time was spent in most, e.g. "Kernel#sleep".
  def name_of_heaviest(state, thread_id = nil)
    weights = Hash.new(0)
    segment.tallies.each do |tally|
      next unless tally.state == state && (thread_id.nil? || tally.thread_id == thread_id)

      tally.each { |node, wall,| weights[segment.frame(node).name] += wall }
    end
    weights.max_by(&:last)&.first
  end

  # Programs that threads_test looks at for what they did, and timing/threads_test for how long.
  ALONE = <<~'RUBY'
    start
    burn(0.2)
    def doze = sleep(0.3)
    doze
    stop
  RUBY

  SHARING = <<~'RUBY'
    start
    threads = %w[one two].map { |name| Thread.new { Thread.current.name = name; burn(0.5) } }
    threads.each(&:join)
    stop
  RUBY

  SLEEPING = <<~'RUBY'
    sleeper = Thread.new { Thread.current.name = "sleeper"; sleep }
    reader, writer = IO.pipe
    blocked = Thread.new { Thread.current.name = "reader"; reader.read(1) }
    Thread.pass until sleeper.stop? && blocked.stop?
    start
    burn(0.6)
    stop
    writer.close
  RUBY

  ENDING = <<~'RUBY'
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

  FIBERS = <<~'RUBY'
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
end
