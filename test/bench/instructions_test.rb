# frozen_string_literal: true

require_relative "../test_helper"
require "rbconfig"
require "tmpdir"
require "pitwall/record"
require "pitwall/record/sample"
require "pitwall/bench/blocks"
require "pitwall/bench/instructions"
require "pitwall/bench/script"
require "pitwall/bench/subject"
require "pitwall/bench/whole_command"

# Counting instructions, with a stand-in for valgrind that counts what it is told.
class InstructionsCollectorTest < Minitest::Test
  Bench = Pitwall::Bench

  def setup
    @dir = Dir.mktmpdir("pitwall-instructions")
    @path = ENV["PATH"]
  end

  def teardown
    ENV["PATH"] = @path
    FileUtils.rm_rf(@dir)
  end

  # `count` is Ruby code: what it prints for the words of the command line.
  def stand_in(count)
    program = "#!#{RbConfig.ruby} --disable-gems\n$stderr.puts \"==1== Collected : \#{#{count}}\"\n"
    File.write(File.join(@dir, "valgrind"), program, perm: 0o755)
    ENV["PATH"] = "#{@dir}:#{@path}"
  end

  def calibration(batch: 10)
    Bench::Script::Calibration.new(batch: batch, batches: 5, warmup: 0, process_ns: 1_000_000, iteration_ns: 100_000.0)
  end

  def entry(measurer, kase = nil) = Bench::Blocks::Entry.new(measurer: measurer, case: kase, calibration: calibration)

  def subject(**more)
    Bench::Subject.new(name: "A", ruby: [RbConfig.ruby], env: {}, dir: @dir, requires: [], facts: {}, **more)
  end

  def count(*entries) = Bench::Instructions.new(entries, random: Random.new(1)).call

  # What a process does beside its iterations falls out: 7 an iteration, 1000 for the rest.
  def test_a_cases_own
    stand_in("1000 + ARGV.join(' ')[/iterations_only=(\\d+)/, 1].to_i * ARGV.join(' ')[/batch=(\\d+)/, 1].to_i * 7")
    kase = Pitwall::Record::Case.new(index: 0, block: 0, block_name: "", name: "-e", label: "-e", params: {}, flags: [])
    side = entry(Bench::Script.new(subject(code: "1")), kase)
    assert_equal [[7.0, 7.0, 7.0]] * 2, count(side, side).counts
  end

  def test_a_commands_first_process
    stand_in("ARGV.include?('true') ? 500 : 0")
    assert_equal [[500.0] * 3], count(entry(Bench::WholeCommand.new(subject(command: ["true"])))).counts
  end

  def test_why_nothing_was_counted
    command = entry(Bench::WholeCommand.new(subject(command: ["true"])))
    stand_in("'none'")
    assert_match(/callgrind counted nothing/, count(command).reason)
    ENV["PATH"] = @dir
    File.unlink(File.join(@dir, "valgrind"))
    assert_match(/valgrind is not installed/, count(command).reason)
  end
end
