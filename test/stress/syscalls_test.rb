# frozen_string_literal: true

require_relative "stress"
require_relative "../support/syscall_dispatch"
require "pitwall"

# Eight threads that make calls while processes are forked and spawned and signals fly: no call is lost, nothing breaks.
class SyscallsStressTest < Minitest::Test
  include SyscallDispatch
  include RecordedProgram

  SECONDS = Stress::SECONDS
  STORM = <<~RUBY
    SECONDS = #{SECONDS}
    trap("USR1") { File.exist?("/storm/trap") }
    made = Hash.new(0)
    Pitwall.syscalls(record: "a.pit", %s) do
      stop = now + SECONDS
      threads = Array.new(8) do |i|
        Thread.new do
          path, calls = "/storm/thread\#{i}", 0
          until now > stop
            case calls %% 4
            when 0 then File.exist?(path)
            when 1 then (File.open(path) rescue nil)
            when 2 then File.directory?(path)
            else (Dir.children(path) rescue nil)
            end
            calls += 1
            File.read("/proc/self/comm") if calls %% 16 == 0
            Thread.new { File.exist?("/storm/short") }.join if calls %% 256 == 0
          end
          made[path] = calls
        end
      end
      until now > stop
        child = fork { 10.times { File.exist?("/storm/child") }; exit!(7) }
        Process.kill(:USR1, $$)
        system("true") or abort "true failed"
        abort "true said something" unless `true`.empty?
        Process.wait(child)
        abort "child: \#{$?}" unless $?.exitstatus == 7
        Process.wait(fork { exec("true") })
        abort "exec: \#{$?}" unless $?.success?
        Process.wait(fork { Process.kill(:KILL, $$) })
      end
      threads.each(&:join)
    end
    made.each { |path, calls| puts "\#{path} \#{calls}" }
  RUBY

  def setup
    super
    skip_without_dispatch
  end

  def storm(options)
    result = attempt(format(STORM, options), options: ["-W0"], patience: 120 + SECONDS * 20)
    assert result.status.success?, "#{result.status}\n#{result.out}\n#{result.err[0, 6000]}"
    made = result.out.lines.to_h { |line| line.split.then { |path, calls| [path, calls.to_i] } }
    assert_equal 8, made.size
    assert_operator made.values.min, :>, 0
    made
  end

  def test_no_call_is_lost
    made = storm("stacks: true")
    part = segment
    assert_sane(part)
    seen = Hash.new(0)
    part.each_syscall { |call| seen[call.path] += 1 if call.path&.start_with?("/storm/thread") }
    assert_equal made, seen
    assert_equal [0, 0, nil, false], part.syscall_facts.to_a
    children = Dir[file("a-*.pit")].map { |name| Pitwall::Record.read(name).segments.first }.select(&:syscalls?)
    assert_operator children.size, :>, 0
    children.each do |child|
      looks = 0
      child.each_syscall { |call| looks += 1 if call.path == "/storm/child" }
      assert_includes [0, 10], looks
    end
  end

  def test_no_call_is_uncounted
    made = storm("count: true")
    counted = segment.syscall_totals.values.sum(&:first)
    assert_operator counted, :>=, made.values.sum
  end
end
