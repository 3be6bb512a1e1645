# frozen_string_literal: true

require_relative "stress"

# One load a test, four tests a load.
class LoadsTest < Minitest::Test
  include Stress

  MIXED = "load #{File.join(Checkout::ROOT, "benchmarks/programs/mixed.rb").dump}"

  # The load on which another sampler aborts Ruby 3.4 within ten seconds, every time.
  load_test(:mixed, before: "#{MIXED}\nMIXED = Programs::Mixed.new") { "MIXED.pass" }

  load_test(:short_threads) do
    "[20, 5].each { |n| Array.new(n) { Thread.new { (1..200).sum { |x| x.to_s.size } } }.each(&:join) }"
  end

  load_test(:threads_that_end_badly) do
    <<~'RUBY'
      Array.new(5) { Thread.new { Thread.current.report_on_exception = false; raise "x" } }.each { |t| t.join rescue nil }
      Array.new(5) { Thread.new { sleep } }.each { |t| Thread.pass; t.kill.join }
      Thread.new { Thread.exit }.join
      Thread.new { Thread.new { Thread.pass }.join; throw :x rescue nil }.join
    RUBY
  end

  load_test(:fibers) do
    <<~'RUBY'
      50.times { f = Fiber.new { 10.times { Fiber.yield [1, 2, 3].map(&:to_s) } }; 10.times { f.resume } }
      e = Enumerator.new { |y| 500.times { |i| y << i } }
      500.times { e.next }
      Array.new(50) { Fiber.new { Fiber.yield }.tap(&:resume) } # left unfinished
    RUBY
  end

  load_test(:gc_at_every_allocation) do
    'GC.stress = true; 20.times { "a" + "b"; { a: 1 }.map { |k, v| [k, v] }; Thread.new { [1].to_s }.join }; GC.stress = false'
  end

  load_test(:compaction, before: 'exit!(puts("end").to_i) unless GC.respond_to?(:compact) && (GC.compact rescue nil); GC.auto_compact = true; $n = 0') do
    <<~'RUBY'
      a = Array.new(5000) { "x" * rand(50) }
      eval("def dyn#{$n += 1} = [1, 2].each { |x| x.to_s }; dyn#{$n}")
      GC.compact
      a.size
    RUBY
  end

  # Forgotten methods, whose iseqs the sampler may still hold.
  load_test(:methods_that_come_and_go, before: "$n = 0") do
    <<~'RUBY'
      100.times { $n += 1; eval("def m#{$n}; #{$n}.to_s.each_char.map { |x| x }.size; end; m#{$n}", TOPLEVEL_BINDING, "m#{$n}.erb", $n); Object.send(:remove_method, "m#{$n}") }
      GC.start(full_mark: false)
    RUBY
  end

  load_test(:exceptions) do
    <<~'RUBY'
      500.times do
        begin
          raise ArgumentError, "a"
        rescue ArgumentError => e
          e.backtrace
        ensure
          catch(:x) { [1].each { throw :x } }
        end
      end
    RUBY
  end

  # Whole stacks of 4,096 new frames fill the ring faster than anybody could empty it.
  load_test(:deep_stacks, before: "def deeper(n) = [n].each { |m| deeper(m + 1) }\nDOWN = ->(n) { n.zero? ? 0 : DOWN.(n - 1) }") do
    "begin; deeper(0); rescue SystemStackError; end; DOWN.(2000); Thread.new { begin; deeper(0); rescue SystemStackError; end }.join"
  end

  load_test(:io, before: "READER, WRITER = IO.pipe") do
    <<~'RUBY'
      t = Thread.new { 500.times { READER.read(1) } }
      500.times { WRITER.write("x") }
      t.join
      q = SizedQueue.new(3)
      c = Thread.new { 500.times { q.pop } }
      500.times { q << 1 }
      c.join
      m = Mutex.new
      Array.new(4) { Thread.new { 50.times { m.synchronize { Thread.pass } } } }.each(&:join)
      IO.select([READER], nil, nil, 0.001)
      sleep 0.001
    RUBY
  end

  load_test(:forks) do
    <<~'RUBY'
      pid = fork { 3000.times { [1].map(&:to_s) }; exit!(0) if rand < 0.5 }
      Process.wait(pid)
      abort "child: #{$?}" unless $?.success?
      system("true") && `echo`
      Thread.new { Process.wait(fork { Thread.new { [1].to_s }.join }) }.join
    RUBY
  end

  if RUBY_VERSION >= "3.3" # older ones crash by themselves now and then
    load_test(:ractors) { "Array.new(2) { Ractor.new { 2000.times { [1, 2].map(&:to_s) }; 1 } }.each { |r| r.respond_to?(:value) ? r.value : r.take }" }
  end

  load_test(:tracing) { "TracePoint.new(:call, :c_call, :line) { }.enable { 50.times { [3, 1].sort.map(&:to_s) } }; ObjectSpace.each_object(Module).first(50)" }

  load_test(:trap_handlers, before: 'trap("USR1") { [1].map(&:to_s) }') { "20.times { Process.kill(:USR1, $$) }; 500.times { [1].map(&:to_s) }" }
end
