# frozen_string_literal: true

require_relative "../test_helper"
require "fileutils"
require "rbconfig"
require "tmpdir"
require "pitwall/bench/blocks"
require "pitwall/bench/script"

# Processes that run in turns: who runs when, and what becomes of the others when one ends.
class TurnsTest < Minitest::Test
  Bench = Pitwall::Bench

  def setup
    @folder = Dir.mktmpdir("pitwall-turns")
    @log = File.join(@folder, "log")
  end

  def teardown
    @measurers.to_a.each(&:close)
    FileUtils.rm_rf(@folder)
  end

  def measurer(side, code, timeout: 120)
    subject = Bench::Subject.new(name: side, ruby: [RbConfig.ruby, "--disable-gems"], dir: @folder, code: code,
                                 env: { "SIDE" => side, "LOG" => @log }, requires: [], facts: {})
    (@measurers ||= []) << Bench::Script.new(subject, timeout: timeout)
    @measurers.last
  end

  def blocks(codes, batches: [6] * codes.size, **options)
    entries = codes.each_with_index.map do |code, at|
      calibration = Bench::Script::Calibration.new(batch: 1, batches: batches[at], warmup: 2, process_ns: 1,
                                                   iteration_ns: 1)
      Bench::Blocks::Entry.new(measurer: measurer("AB"[at], code, **options), calibration: calibration,
                               case: Pitwall::Record::Case.new(index: 0, name: "-e"))
    end
    Bench::Blocks.new(entries, random: Random.new(1), in_turns: true)
  end

  # One failure is a loss, the next the end.
  def refused(...)
    measured = blocks(...)
    assert_raises(Bench::Failed) { 3.times { assert_nil measured.run } }.message
  end

  LOGGING = 'File.write(ENV["LOG"], ENV["SIDE"], mode: "a")'

  def test_batches_alternate_and_back
    samples = blocks([LOGGING, LOGGING]).run
    assert_equal [6, 6], samples.map { |sample| sample["wall"].size }
    assert_equal [0, 1], samples.map(&:order)
    first, second = samples.map(&:side)
    timed = File.read(@log)[-12..]
    assert_equal "#{first}#{second}#{second}#{first}" * 3, timed
  end

  # What came before the batches was done one by one as well.
  def test_warm_ups_do_not_mix
    blocks([LOGGING, LOGGING]).run
    warm = File.read(@log)[0...-12]
    assert_match(/\A(A+B+|B+A+)\z/, warm)
  end

  def test_sides_with_different_numbers_of_batches
    samples = blocks([LOGGING, LOGGING], batches: [3, 7]).run
    assert_equal({ "A" => 3, "B" => 7 }, samples.to_h { |sample| [sample.side, sample["wall"].size] })
  end

  def test_one_side_that_fails_says_why_and_leaves_nobody_behind
    pids = File.join(@folder, "pids")
    note = "File.write(#{pids.dump}, \"\#{$$}\\n\", mode: 'a') if ($n = $n.to_i.succ) == 1; "
    assert_match(/broken/, refused(["#{note}1", "#{note}raise 'broken' if $n > 5"]))
    File.readlines(pids).each do |pid|
      assert_raises(Errno::ESRCH) { 3000.times { Process.kill(0, pid.to_i) && sleep(0.02) } }
    end
  end

  def test_a_process_that_is_killed_in_its_turn
    assert_match(/killed by SIGKILL/, refused(["1", "Process.kill(:KILL, $$) if ($n = $n.to_i.succ) > 5"]))
  end

  def test_a_turn_that_never_ends_is_ended
    assert_match(/did not end within 1 s/, refused(["1", "sleep if ($n = $n.to_i.succ) > 5"], timeout: 1))
  end

  def test_what_a_case_leaves_behind_holds_nobody_up
    samples = blocks(["1", "fork { sleep 600 } if ($n = $n.to_i.succ) == 2"]).run
    assert_equal 2, samples.size
  end

  def test_an_interrupt_ends_all
    run = blocks(["sleep 0.2", "sleep 0.2"])
    thread = Thread.new { run.run }
    sleep 0.8
    thread.kill
    assert thread.join(120), "still running"
  end
end
