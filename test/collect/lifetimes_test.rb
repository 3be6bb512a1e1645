# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../stress/stress"

# What is begun, ended, freed or closed by one while another still uses it.
class LifetimesTest < Minitest::Test
  include RecordedProgram

  MAIN_ONLY = "begin; Pitwall.%s; rescue Exception; $!.class.name; end"

  # Starting and stopping run Ruby code, and so other threads: at each line of it, here.
  def test_what_is_half_begun_cannot_be_stopped
    { "allocations" => 1, "trace" => 200 }.each do |collector, every|
      out = run_program(<<~RUBY)
        other = Thread.new { Thread.pass until Pitwall.recording?; puts problem { Pitwall.stop } }
        n = 0
        tracing = TracePoint.new(:line, :call, :c_call) { Thread.current == Thread.main && (n += 1) % #{every} == 0 && Thread.pass }
        tracing.enable { start(mode: "none", collectors: { #{collector.dump} => {} }) }
        other.join
        puts problem { stop } if Pitwall.recording?
      RUBY
      first, = out.lines(chomp: true)
      assert_includes ["StateError: another thread is starting or stopping the recording", "nothing"], first
      assert read.segments.fetch(0).tail, collector
    end
  end

  def test_what_is_half_ended_cannot_be_stopped
    out = run_program(<<~'RUBY')
      GC.start
      GC.disable
      said = []
      start(mode: "none", collectors: { "allocations" => {} })
      def leave(said) = 100.times { ObjectSpace.define_finalizer(Object.new, proc { said << problem { Pitwall.stop } if said.empty? }) }
      leave(said)
      100.times { "x" }
      stop
      puts said.uniq, Pitwall.recording?
    RUBY
    assert_includes ["StateError: another thread is starting or stopping the recording\nfalse\n", "false\n"], out
    assert read.segments.fetch(0).tail
  end

  def test_other_ractors_do_not_stop_it
    %w[stop pause].each do |ending|
      out = run_program(<<~RUBY, options: ["-W0"])
        start
        ractor = Ractor.new { #{format(MAIN_ONLY, ending)} }
        10_000.times { |i| [i].map(&:to_s) }
        puts ractor.respond_to?(:value) ? ractor.value : ractor.take
        puts Pitwall.recording?
        stop
      RUBY
      assert_match(/\A(Pitwall::CannotMeasure|Ractor::IsolationError)\ntrue\n\z/, out)
      assert_sane(segment)
    end
  end

  # A thread that Ruby ends at its end begins to record.
  def test_a_recording_that_begins_as_ruby_ends
    require "pitwall"
    Pitwall.load_native!
    [*Stress::MODES.map { |mode| [mode, "{}"] }, *[{}, { "bursts" => "1" }].map { |options| ["none", { "allocations" => options }.inspect] },
     *%w[trace syscalls].map { |name| ["none", { name => {} }.inspect] }].each do |mode, collectors|
      next if collectors.include?("syscalls") && Pitwall::Native.syscall_dispatch

      run_program(<<~RUBY)
        Thread.new { begin; sleep; ensure; start(mode: #{mode.dump}, collectors: #{collectors}, interval_ns: 100_000) if Pitwall::Native.walk == "own"; end }
        Thread.pass until Thread.list.all? { |thread| thread == Thread.current || thread.stop? }
      RUBY
      assert read.segments.fetch(0).tail, "#{mode} #{collectors}" if Pitwall::Native.walk == "own"
    end
  end

  # Programs that become daemons close all descriptors, and open files of their own in their place.
  def test_closed_descriptors_are_let_go
    skip "system calls by number" unless RUBY_PLATFORM == "x86_64-linux" || RUBY_PLATFORM == "x86_64-linux-gnu"
    out = run_program(<<~'RUBY', options: ["-W0"])
      start(flush_ns: 10_000_000)
      (3..30).each { |fd| syscall(3, fd) if File.readlink("/proc/self/fd/#{fd}").end_with?(".pit") rescue nil }
      files = Array.new(10) { |i| File.open("mine#{i}", "w") }
      500.times { |n| eval("def m#{n} = 100.times { |x| x + 1 }; m#{n}", TOPLEVEL_BINDING, "m#{n}.rb") }
      burn(0.2)
      puts Pitwall::Native.write_error
      stop
      files.each { |one| one.write("mine"); one.close }
      puts Array.new(10) { |i| File.read("mine#{i}") }.uniq
    RUBY
    assert_equal [Errno::EBADF::Errno.to_s, "mine"], out.lines(chomp: true)
  end

  # A Ractor that ends while the main one forks holds Ruby's lock of thread events, in the child for ever.
  # Ruby's own fork hangs there as well now and then, with nothing recorded: in the child, before any Ruby code runs, as an ending thread
  # held a lock of Ruby's. What comes first of all in the child, before an interrupt can be looked for, tells its parent that it came further.
  def test_children_forked_while_ractors_end
    out = run_program(<<~'RUBY', options: ["-W0"])
      module Fork
        def _fork
          pid = super
          Process.setpriority(Process::PRIO_PROCESS, 0, BEYOND - pid.clamp(0, 1)) # without a branch, where Ruby would look for interrupts
          pid
        end
      end
      BEYOND = Process.getpriority(Process::PRIO_PROCESS, 0) + 1
      Process.singleton_class.prepend(Fork)
      start
      ours = 0
      80.times do
        Array.new(2) { Ractor.new { 50.times { [1].map(&:to_s) } } }.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
        pid = fork { [1].map(&:to_s); exit!(0) }
        limit = now + 30
        until Process.wait(pid, Process::WNOHANG)
          if now > limit
            ours += 1 if Process.getpriority(Process::PRIO_PROCESS, pid) == BEYOND
            Process.kill(:KILL, pid)
          end
          sleep 0.001
        end
      end
      stop
      puts "#{ours} hung"
    RUBY
    assert_equal "0 hung\n", out
    assert_sane(segment)
  end if RUBY_VERSION >= "3.3" # older ones crash by themselves with Ractors now and then
end
