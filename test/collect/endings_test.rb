# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/syscall_dispatch"
require "pitwall/record"

# Programs that end without at_exit: by exec or by exit!. Their recordings have all names.
class EndingsTest < Minitest::Test
  include CommandLine
  include SyscallDispatch

  # Fresh methods up to the end: without the completed recording their names would be missing.
  PROGRAM = <<~'RUBY'
    Thread.new { Thread.current.name = "helper"; 200_000.times { |i| i.to_s } }.join
    300.times do |n|
      Object.class_eval("def fresh_#{n} = 300.times { |i| i.to_s }")
      send(:"fresh_#{n}")
    end
  RUBY
  AFTERWARDS = "def after = 200_000.times { |i| i.to_s }; after"

  def record(ending, *options, program: PROGRAM, verb: "profile")
    File.write(File.join(@dir, "x.rb"), "#{program}#{ending}\n")
    interval = verb == "profile" ? %w[--interval 100us] : []
    finished = pitwall(verb, "--quiet", *interval, *options, "--record", "x.pit", "--", RUBY, "x.rb")
    [finished, Pitwall::Record.read(File.join(@dir, "x.pit")).segments]
  end

  def run_alone(*arguments) = capture({}, RUBY, *arguments)

  def assert_named(segments, context = nil)
    segments.each do |segment|
      nodes = segment.tallies.flat_map { |tally| tally.to_enum(:each).map { |node, *| node } }.uniq
      assert_empty(nodes.select(&:positive?).map { |node| segment.frame(node).name }.grep(/unresolved/), context)
    end
  end

  MODES = %w[signal outside safepoint].freeze

  def test_exec
    MODES.each do |mode|
      ["exec('true')", "Kernel.exec('true')", "Process.exec('true')", "Thread.new { exec('true') }.join",
       "fork { exec('true') }; Process.wait; exec('true')"].each do |ending|
        finished, segments = record(ending, "--mode", mode)
        assert_equal [0, ""], [finished.status.exitstatus, finished.err], ending
        assert_named(segments, ending)
        assert_equal "exec", segments.first.tail["reason"], ending
        assert_includes segments.first.threads.values.map(&:name), "helper"
      end
    end
  end

  def test_exit_without_handlers
    ["exit!(3)", "Kernel.exit!(3)", "Process.exit!(3)"].each do |ending|
      finished, segments = record(ending)
      assert_equal [3, ""], [finished.status.exitstatus, finished.err], ending
      assert_named(segments, ending)
      assert_equal "exit!", segments.first.tail["reason"]
    end
  end

  def test_an_exec_that_fails_raises_and_the_recording_goes_on
    ending = "begin; exec('/no/such/file'); rescue Errno::ENOENT; puts 'went on'; end; #{AFTERWARDS}"
    finished, segments = record(ending)
    assert_equal "went on\n", finished.out
    assert_equal %w[exec stop], segments.map { |segment| segment.tail["reason"] }
    assert_includes segments.last.frames.values.map(&:name), "Object#after"
  end

  def test_wrong_arguments_do_not_end_the_recording
    first = "begin; exit!('x'); rescue TypeError; puts 'went on'; end"
    second = "begin; exit!(1, 2); rescue ArgumentError; puts 'again'; end"
    finished, segments = record("#{first}; #{second}; #{AFTERWARDS}")
    assert_equal "went on\nagain\n", finished.out
    assert_equal(["stop"], segments.map { |segment| segment.tail["reason"] })
  end

  def test_exec_in_a_profiled_block
    File.write(File.join(@dir, "x.rb"), <<~RUBY)
      require "pitwall"
      #{PROGRAM}
      Pitwall.profile(path: "x.pit") do
        def inside = 400_000.times { |i| i.to_s }
        inside
        exec("true")
      end
    RUBY
    finished = run_alone("-I#{ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")}", "x.rb")
    assert_equal [0, ""], [finished.status.exitstatus, finished.err]
    segments = Pitwall::Record.read(File.join(@dir, "x.pit")).segments
    assert_named(segments)
    assert_includes segments.last.frames.values.map(&:name), "Object#inside"
  end

  # What a program can see of the methods is what it sees without us.
  def test_the_methods_look_as_they_do_alone
    program = <<~'RUBY'
      places = %i[exec exit!].flat_map { |name| [Kernel.instance_method(name), Kernel.method(name), Process.method(name)] }
      p places.map { |method| [method.owner, method.name, method.original_name, method.arity, method.parameters] }
      p places.map { |method| [method.source_location, method.inspect] }
      p Kernel.private_instance_methods(false).grep(/\Aex/).sort, Object.ancestors
      p Process.singleton_class.ancestors.take(2).map(&:to_s)
      [-> { exec("/no/such/file") }, -> { Kernel.exec("/no/such/file") }, -> { Process.exec }, -> { exit!("x") },
       -> { Object.new.exec("true") }].each do |call|
        call.call
      rescue SystemCallError, ArgumentError, TypeError, NoMethodError => error
        p error.class, error.message.sub(/0x\h+/, ""), error.backtrace, error.cause
      end
      puts "\n"
    RUBY
    %w[-W1 -w].each do |warnings|
      File.write(File.join(@dir, "z.rb"), program)
      expected = run_alone(warnings, "z.rb")
      finished = pitwall("profile", "--quiet", "--record", "x.pit", "--", RUBY, warnings, "z.rb")
      assert_equal [expected.out, expected.err], [finished.out, finished.err]
    end
  end

  def test_what_the_program_has_put_in_their_place_stays
    File.write(File.join(@dir, "x.rb"), <<~RUBY)
      module Kernel
        def exec(*) = puts("theirs")
      end
      require "pitwall"
      Pitwall.profile(path: "x.pit") { exec("true") }
    RUBY
    assert_equal "theirs\n", run_alone("-W0", "-I#{ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")}", "x.rb").out
  end

  # The collectors that count have all that came before, and system calls are told up to the execve itself.
  def test_other_collectors
    program = "def work = 5_000.times.map { |i| [i] }\nwork\n"
    _, segments = record("exec('true')", verb: "trace", program: program)
    names = segments.first.calls.map { |row| segments.first.frame(row.node_id).name }
    assert_includes names, "Object#work"
    assert_empty names.grep(/unresolved/)
    _, segments = record("exec('true')", verb: "allocations", program: program)
    assert_operator segments.first.sites.sum(&:count), :>, 5_000
  end

  def test_system_calls_are_told_up_to_execve
    skip_without_dispatch
    failing = "begin; exec('/no/such/file'); rescue Errno::ENOENT; 1; end"
    _, segments = record("#{failing}; File.stat('/'); exec('true')", verb: "syscalls", program: "")
    calls = [].tap { |found| segments.first.each_syscall { |call| found << call } }
    assert_equal(1, calls.count { |call| call.name =~ /stat/ && call.path == "/" })
    assert_empty calls.map(&:node).select(&:positive?).map { |node| segments.first.frame(node).name }.grep(/unresolved/)
  end

  # A child forked beside threads must not wait for any of them.
  def test_many_children_that_exit_at_once
    program = <<~'RUBY'
      lock = Mutex.new
      threads = [Thread.new { lock.synchronize { sleep } }, Thread.new { lock.synchronize { nil } }]
      threads << Thread.new { Queue.new.pop }
      statuses = Array.new(200) { Process.wait2(fork { exit!(7) })[1].exitstatus }
      p statuses.tally
      threads.each(&:kill)
    RUBY
    statuses = { 7 => 200 }
    MODES.each do |mode|
      finished, segments = record("", "--mode", mode, program: program)
      assert_equal ["#{statuses}\n", "", 0], [finished.out, finished.err, finished.status.exitstatus], mode
      # A child that ends before its first safepoint (Ruby 4.0) began no recording.
      assert_empty segments.map { |segment| segment.tail["reason"] } - %w[exit! stop], mode
    end
  end

  # Nobody completes the recording then (doc/limits.md); the process ends as it does alone, and what was written can be read.
  def test_c_code_that_calls_exec_or_exit
    { '["execv"], [POINTER, POINTER], INT).call("/bin/true", [["true"].pack("p"), [0].pack("J")].join)' => 0, '["_exit"], [INT], INT).call(5)' => 5 }.each do |call, status|
      File.write(File.join(@dir, "x.rb"), <<~RUBY)
        require "fiddle"
        include Fiddle
        POINTER, INT = TYPE_VOIDP, TYPE_INT
        def work = 40_000.times { |i| i.to_s }
        15.times { work; sleep 0.1 } # names come while Ruby runs, and are written once a second
        Function.new(Fiddle.dlopen(nil)#{call}
      RUBY
      %w[signal outside].each do |mode|
        finished = pitwall("profile", "--quiet", "--mode", mode, "--record", "x.pit", "--", RUBY, *gem_options("fiddle"), "x.rb")
        assert_equal [status, ""], [finished.status.exitstatus, finished.err], "#{call} #{mode}"
        segment = Pitwall::Record.read(File.join(@dir, "x.pit")).segments.first
        assert_nil segment.tail
        assert_includes segment.frames.values.map(&:name), "Object#work"
      end
    end
  end

  def test_a_ractor_may_not_complete_but_ends_as_alone
    ending = "Warning[:experimental] = false; r = Ractor.new { exit!(5) }; sleep"
    finished, = record(ending, program: "")
    assert_equal 5, finished.status.exitstatus
  end
end
