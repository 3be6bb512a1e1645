# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# `profile --perf` where perf is missing, refuses or dies: one line, and the profile without perf.
class PerfBesideTest < Minitest::Test
  include CommandLine

  PROGRAM = "#{CommandLine.busy} exit 7"

  # Runs with this text as perf, or with none.
  def profile(perf = nil)
    Dir.mkdir(file("bin"))
    if perf
      File.write(file("bin/perf"), "#!#{RUBY} --disable=gems\n#{perf}")
      File.chmod(0o755, file("bin/perf"))
    end
    result = pitwall("profile", "--perf", "--quiet", "--record", "x.pit", "--", RUBY, "-e", PROGRAM,
                     env: { "PATH" => file("bin"), "PITWALL_DEBUG" => nil })
    assert_equal 7, result.status.exitstatus, result.err
    assert_operator segments(file("x.pit")).first.stat("captures"), :>, 0
    assert_equal %w[.tmp bin x.pit], Dir.children(@dir).sort
    result.err
  end

  def assert_line(expected, err)
    assert_match expected, err
    assert_equal 1, err.lines.size, err
  end

  # Says that it records, when it is told to.
  READY = <<~RUBY
    control, answer = ARGV[ARGV.index("--control") + 1].delete_prefix("fd:").split(",").map { |fd| IO.for_fd(fd.to_i) }
    control.gets
    answer.syswrite("ack\\n")
  RUBY

  def test_missing
    assert_line(/perf is not installed: install it .*; recording goes on without --perf/, profile)
  end

  def test_not_permitted
    err = profile(%(warn "Error:", "No permission to enable task-clock event."; exit 255))
    assert_line(/perf is not allowed to record here \(No permission.*\): sysctl kernel.perf_event_paranoid=1/, err)
  end

  def test_too_old
    err = profile(%(warn " Error: unknown option `control'"; exit 129))
    assert_line(/perf is too old \(.*\): install perf 5.10 or newer/, err)
  end

  def test_killed
    err = profile("#{READY}Process.kill(:KILL, Process.pid)")
    assert_match(/perf was killed \(SIGKILL\): its frames are missing from then on/, err)
  end

  def test_ends_early
    err = profile(%(#{READY}exit 1 if ARGV.first == "script"; warn "no space"; exit 1))
    assert_match(/perf ended early \(no space\): its frames are missing from then on/, err)
  end

  def test_its_text_is_no_text
    err = profile(<<~RUBY)
      if ARGV.first == "script" then puts "\\0\\1 nonsense"; exit end
      #{READY}trap(:INT) { warn "Captured and wrote"; exit }
      sleep
    RUBY
    assert_line(/perf took no sample/, err)
  end

  def test_a_command_that_cant_be_started
    Dir.mkdir(file("bin"))
    result = pitwall("profile", "--perf", "--", "./nothing", env: { "PITWALL_DEBUG" => nil })
    assert_equal 127, result.status.exitstatus
    assert_nothing_left
  end
end
