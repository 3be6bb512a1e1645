# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/own_walk"
require_relative "../support/syscall_dispatch"
require "pitwall/record"

# What is left on a Ruby whose layout is not known. `rake test:unknown` builds an extension that knows no layout and names
# it in TEST_LIB. On Rubies without a column the ordinary build is such an extension.
class UnknownLayoutTest < Minitest::Test
  include CommandLine
  include SyscallDispatch

  NOT_KNOWN = "the layout of Ruby #{RUBY_VERSION[/\d+\.\d+/]} is not known to this Pitwall (it knows 3.1 to 4.0 on 64-bit Linux)"

  PROGRAM = <<~'RUBY'
    Item = Struct.new(:name)
    def make = Array.new(1000) { |n| Item.new(n.to_s) }
    def job
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.2
      make while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
    end
    File.read(__FILE__)
    Thread.new { job }.join
  RUBY

  def setup
    super
    assert_equal NOT_KNOWN, OwnWalk.refusal
    File.write(file("program.rb"), PROGRAM)
  end

  def run_pitwall(*arguments)
    result = pitwall(*arguments, "--", RUBY, "program.rb")
    assert_equal 0, result.status.exitstatus, result.err
    result.out + result.err
  end

  def test_profile
    run_pitwall("profile", "--quiet", "--record", "a.pit")
    segment = Pitwall::Record.read(file("a.pit")).segments.first
    assert_equal %w[signal rb_profile_frames], [segment.header.mode, segment.header.walk]
    assert_match(/Object#job/, pitwall("report", "a.pit", "--view", "flat").out)
  end

  def test_allocations_by_line
    run_pitwall("allocations", "--quiet", "--record", "a.pit")
    assert_match(/program\.rb:2\b.*Item|Item.*program\.rb:2\b/, pitwall("report", "a.pit", "--view", "allocations").out)
  end

  # By line, where a known Ruby has them by stack.
  def test_samples_with_objects
    run_pitwall("profile", "--quiet", "--allocations", "--record", "a.pit")
    assert_match(/program\.rb:2\b/, pitwall("report", "a.pit", "--view", "allocations").out)
  end

  def test_system_calls
    skip_without_dispatch
    shown = run_pitwall("syscalls")
    assert_match(/^openat +\d/, shown)
    assert_match(/ program\.rb:7$/, shown)
  end

  # One line says what is missing.
  def test_what_needs_the_layout_says_so
    { %w[trace] => "cannot trace: #{NOT_KNOWN}", %w[allocations --stacks] => "cannot take stacks of allocations: #{NOT_KNOWN}" }.each do |arguments, message|
      result = pitwall(*arguments, "--record", "b.pit", "--", RUBY, "program.rb")
      assert_includes result.err.lines.map(&:chomp).join("\n"), message
      assert_equal 4, result.status.exitstatus, result.err
    end
  end

  def test_the_doctor_says_what_is_missing
    report = JSON.parse(pitwall("doctor", "--format", "json").out)
    assert_equal ["stack walk", "rb_profile_frames: #{NOT_KNOWN}"], report["checks"].find { |check| check["affects"].include?("trace") }.values_at("name", "value")
  end
end unless OwnWalk.used?
