# frozen_string_literal: true

require_relative "stress"

# Starting, stopping and forking again and again, while the program does as it likes.
class SessionsTest < Minitest::Test
  include Stress

  def settings = { interval_ns: 100_000 }

  def test_starts_and_stops_under_threads
    Stress::MODES.each do |mode|
      out = attempt(<<~RUBY, options: ["-W0"], patience: PATIENCE)
        busy = Array.new(3) { Thread.new { loop { Array.new(50) { |i| i.to_s }; Thread.new { 1 }.join } } }
        limit = now + #{Stress::SECONDS}
        n = 0
        until now > limit && n > 20
          start("a.pit", mode: #{mode.dump})
          rand < 0.3 ? sleep(0.001) : burn(0.001)
          (Pitwall.pause; Pitwall.resume) if rand < 0.2
          stop
          n += 1
        end
        busy.each(&:kill).each(&:join)
        puts n
      RUBY
      assert out.status.success?, "#{mode}: #{out.status} #{out.err[0, 6000]}"
      assert_operator out.out.to_i, :>, 20
      read.segments.each { |part| assert_sane(part) }
    end
  end

  # When a Ruby thread ends, Ruby frees its execution context and reuses its native thread for a new Ruby thread.
  def test_threads_that_ended_before_the_start
    Stress::MODES.each do |mode|
      out = attempt(<<~RUBY, options: ["-W0"], patience: PATIENCE)
        threads = -> { Array.new(10) { Thread.new { 1 } }.sum(&:value) }
        sums = Array.new(3) do
          threads.()
          GC.start
          start("a.pit", mode: #{mode.dump})
          sum = Array.new(30) { |i| GC.start if i % 10 == 0; threads.() }.sum
          stop
          sum
        end
        p sums
      RUBY
      assert_equal [true, "[300, 300, 300]\n", ""], [out.status.success?, out.out, out.err[0, 6000]], mode
    end
  end

  # Children of children, from threads, while others burn, collect and stop.
  def test_a_storm_of_forks
    Stress::MODES.each do |mode|
      result = attempt(<<~RUBY, options: ["-W0"], patience: PATIENCE)
        start(mode: #{mode.dump}, flush_ns: 10_000_000)
        busy = Array.new(2) { Thread.new { loop { Array.new(100) { |i| "x\#{i}" } } } }
        limit = now + #{Stress::SECONDS}
        failed = []
        until now > limit
          pids = Array.new(4) do |i|
            fork do
              GC.start if i == 0
              Array.new(200) { |k| k.to_s }
              Process.wait(fork { exit!(0) }) if i == 1
              exec("true") if i == 2
              stop if i == 3
            end
          end
          pids.each { |pid| Process.wait(pid); failed << $?.to_s unless $?.success? }
        end
        busy.each(&:kill).each(&:join)
        stop
        puts failed.uniq
      RUBY
      assert_equal [true, "", ""], [result.status.success?, result.out, result.err], mode
      assert_sane(segment)
      Dir.children(@dir).grep(/\Aa-\d+/).each { |name| assert_operator read(name).segments.size, :>=, 1 }
      Dir.children(@dir).grep(/\Aa-/).each { |name| File.delete(file(name)) }
    end
  end

  # However long it runs: 3,600,000 samples of ever-new stacks stay within 64 MB. Short runs make as many as they can.
  def test_memory_of_many_samples_of_new_stacks
    out = run_program(<<~RUBY)
      eval((0...40).map { |n| "def way\#{n}(d) = d.zero? ? Array.new(20) { |i| i.to_s }.size : send(WAYS.sample, d - 1)" }.join("\\n"))
      WAYS = (0...40).map { |n| :"way\#{n}" }
      peak_kb = -> { File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i }
      200.times { way0(60) }
      GC.start
      before = peak_kb.call
      start
      threads = Array.new(3) { Thread.new { limit = now + #{Stress::SECONDS * 4}; way0(60) until now > limit } }
      threads.each(&:join)
      stop
      puts peak_kb.call - before
    RUBY
    assert_operator out.to_i, :<, 64 << 10, segment.stats.inspect
    assert_sane(segment)
  end

  # What is kept of a thread that has ended waits for a flush, which comes the sooner the more threads end: memory does not follow how
  # many come and go a second. (A trace of 3,000 threads a second took 100 MB and more for what a flush a second left lying.)
  def test_memory_of_many_short_threads
    program = lambda do |settings|
      <<~RUBY
        peak_kb = -> { File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i }
        some = -> { Array.new(25) { Thread.new { 5.times { |i| i.to_s } } }.each(&:join) }
        100.times { some.call }
        GC.start
        before = peak_kb.call
        start(flush_ns: 20_000_000_000, #{settings}) if #{!settings.nil?}
        160.times { some.call; sleep 0.001 }
        stop if #{!settings.nil?}
        puts peak_kb.call - before
      RUBY
    end
    plain = run_program(program.call(nil)).to_i
    [*Stress::MODES.map { |mode| "mode: #{mode.dump}" }, 'mode: "none", collectors: { "trace" => {} }'].each do |settings|
      recorded = run_program(program.call(settings)).to_i
      assert_operator recorded - plain, :<, 32 << 10, settings
      assert_sane(segment)
      assert_operator segment.threads.size, :>=, 4000
    end
  end

  # Methods that were thrown away stay in memory while the recording may have to name them: that, too, has a bound.
  def test_memory_of_evaluated_methods
    program = lambda do |recording|
      <<~RUBY
        peak_kb = -> { File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i }
        one = ->(i) { eval("def m\#{i} = [1, 2].map { |x| x }", TOPLEVEL_BINDING, "m.erb", 1); limit = cpu + 0.0001; send("m\#{i}") while cpu < limit; Object.send(:remove_method, "m\#{i}") }
        500.times(&one)
        GC.start
        before = peak_kb.call
        start if #{recording}
        limit = now + #{Stress::SECONDS * 4}
        i = 500
        one.call(i += 1) until now > limit
        stop if #{recording}
        puts peak_kb.call - before
      RUBY
    end
    plain = run_program(program.call(false)).to_i
    recorded = run_program(program.call(true)).to_i
    assert_operator recorded - plain, :<, 64 << 10
    assert_sane(segment)
  end
end
