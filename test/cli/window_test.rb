# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "pitwall/analyse"
require "pitwall/cli"

# --delay and --duration: which part of a command's time is recorded.
class WindowTest < Minitest::Test
  include CommandLine

  # A program knows what is recorded of it, so no test has to guess how long anything takes.
  HELPERS = <<~RUBY
    $stdout.sync = true
    def session = Pitwall::Collect::Session
    def window = Thread.list.find { |thread| thread.name == "pitwall window" }
    def burn(seconds) = (limit = Process.clock_gettime(2) + seconds; nil while Process.clock_gettime(2) < limit)
    def begun = (sleep 0.01 until session.recording? || session.window.over?)
    def ended = (window&.join; session.recording? and raise "still recorded")
    def early = burn(0.05)
    def within = burn(0.1)
    def late = burn(0.1)
  RUBY

  def program(source)
    File.write(file("program.rb"), "#{HELPERS}\n#{source}")
    [RUBY, "program.rb"]
  end

  def recorded(verb, *options, source)
    result = pitwall(verb, *options, "--record", "x.pit", "--", *program(source))
    messages = result.err.lines.grep(/\Apitwall:(?! recorded for)/).join
    assert_equal [0, ""], [result.status.exitstatus, messages], result.err
    result
  end

  def names = segments(file("x.pit")).flat_map { |segment| segment.frames.each_value.map(&:name) }.uniq

  def pids = segments(file("x.pit")).map { |segment| segment.header.pid }.uniq

  def test_a_recording_begins_and_ends_within_the_program
    program = "early; puts session.recording?; begun; within; ended; late; sleep 1; puts :end"
    result = recorded("profile", "--delay", "2s", "--duration", "1s", program)
    assert_equal "end", result.out.lines.last.chomp
    refute_includes names, "Object#early" if result.out.start_with?("false")
    assert_includes names, "Object#within"
    refute_includes names, "Object#late"
    assert_match(/^pitwall: recorded for 1s; the report comes when the command has ended$/, result.err)
    assert_match(/^Recorded in x\.pit, from 2s after the command's start on, for\n?\s*1s$/, result.err)
  end

  def test_the_command_has_its_own_status
    result = pitwall("profile", "--duration", "2s", "--", *program("begun; ended; exit 3"))
    assert_equal 3, result.status.exitstatus, result.err
  end

  def test_a_delay_alone_records_what_the_program_does_at_its_end
    recorded("profile", "--delay", "300ms", "at_exit { begun; within }")
    assert_includes names, "Object#within"
  end

  def test_a_duration_alone_begins_at_once
    recorded("profile", "--duration", "2s", "puts session.recording?; within; ended; late")
    assert_includes names, "Object#within"
    refute_includes names, "Object#late"
  end

  def test_children_keep_the_same_times
    result = recorded("profile", "--delay", "1s", "--duration", "2s", <<~RUBY)
      first = fork { begun; within; ended; late }
      daemon = IO.pipe
      fork { Process.daemon(true, true); begun; within; ended; daemon[1].puts(Process.pid) }
      begun
      second = fork { begun; within; ended; late }
      third = spawn(#{RUBY.inspect}, "-e", #{"#{HELPERS}\nbegun; within; ended; late".inspect})
      ended
      last = fork { late; session.recording? and raise "recorded" }
      after = spawn(#{RUBY.inspect}, "-e", "exit(Pitwall::Collect::Session.recording? ? 1 : 0)")
      daemon[1].close
      puts daemon[0].read, Process.pid, first, second, third
      Process.waitall.each { |pid, status| status.success? or raise pid.inspect }
    RUBY
    assert_equal result.out.split.map(&:to_i).sort, pids.sort
    assert_includes names, "Object#within"
    refute_includes names, "Object#late"
  end

  # On Ruby 3.1 the main thread of a forked child has its parent's native id, and got no timer.
  def test_the_main_thread_of_a_child_is_sampled_like_any
    recorded("profile", "--mode", "signal", "--delay", "500ms", "fork { begun; within }; Process.wait; begun")
    assert_includes names, "Object#within"
    refute_match(/got no timer/, pitwall("report", "x.pit").out)
  end

  def test_traces_and_allocations_keep_times_too
    recorded("trace", "--delay", "300ms", "--duration", "1s", "begun; within; ended; late")
    assert_includes names, "Object#within"
    refute_includes names, "Object#late"
    # Pitwall's own thread waits for the times.
    refute_match(/UnboundMethod#bind_call|pitwall window/, pitwall("report", "x.pit").out)

    program = "def make(number) = Array.new(number) { Object.new }\n" \
              "begun; kept = make(700); ended; late = make(5_000)"
    recorded("allocations", "--delay", "300ms", "--duration", "1s", program)
    objects = Pitwall::Analyse::Allocations.new(segments(file("x.pit"))).total(:count)
    assert_includes 700..4_000, objects
  end

  def test_a_command_that_ends_before_its_delay
    result = pitwall("profile", "--delay", "100s", "--", RUBY, "-e", "puts 1")
    assert_equal [4, "1\n"], [result.status.exitstatus, result.out]
    ended = /the command ended after [\d.]+ m?s, before --delay 100s was over/
    assert_match(/\Apitwall: nothing was recorded: #{ended}\n\z/, result.err)
    assert_empty recordings
  end

  def test_times_that_are_over_before_ruby_has_started
    result = pitwall("profile", "--quiet", "--duration", "1ms", "--", "sh", "-c", "sleep 0.01; exec #{RUBY} -e 1")
    assert_equal [4, "pitwall: nothing was recorded: no Ruby that Pitwall can enter ran within the times of --delay " \
                     "and --duration\n"],
                 [result.status.exitstatus, result.err]
  end

  def test_nothing_of_the_times_is_told_where_nobody_asked
    program = program("begun; within; ended")
    quiet = pitwall("profile", "--quiet", "--duration", "2s", "--", *program)
    assert_equal [0, ""], [quiet.status.exitstatus, quiet.err]
    json = pitwall("profile", "--duration", "2s", "--format", "json", "--", *program)
    assert_equal "pitwall/report-1", JSON.parse(json.err)["schema"]
  end

  def test_bad_times
    {
      %w[--delay 5] => "--delay 5: not a time; write a number and a unit: 100us, 1ms, 0.5s",
      %w[--duration 0s] => "--duration 0s: out of range; it takes 1ms to 1000000s",
      %w[--duration soon] => "--duration soon: not a time; write a number and a unit: 100us, 1ms, 0.5s"
    }.each do |options, message|
      result = pitwall("profile", *options, "--", RUBY, "-e", "File.write('started', '')")
      assert_equal [2, "pitwall: #{message}\n"], [result.status.exitstatus, result.err.lines.first]
    end
    refute File.exist?(file("started"))
  end
end
