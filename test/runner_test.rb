# frozen_string_literal: true

require_relative "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# script/test itself: what it prints and how it ends, for tests that fail in every way.
class RunnerTest < Minitest::Test
  def setup
    FileUtils.mkdir_p(File.join(Checkout::ROOT, "tmp"))
    @dir = Dir.mktmpdir("runner-test-", File.join(Checkout::ROOT, "tmp"))
  end

  def teardown = FileUtils.rm_rf(@dir)

  # Runs classes of tests in files of their own; those whose name begins with "Timed" are below the folder of timing tests.
  # @return [Array] output, exit status
  def run_tests(classes, options: [], jobs: 1, env: {})
    folder = @dir.delete_prefix("#{Checkout::ROOT}/")
    FileUtils.mkdir_p(File.join(@dir, "timing"))
    files = classes.map do |name, body|
      "#{folder}/#{"timing/" if name.start_with?("Timed")}#{name.downcase}_test.rb".tap do |file|
        File.write(File.join(Checkout::ROOT, file), "require #{File.join(Checkout::ROOT, "test/test_helper").dump}\nclass #{name} < Minitest::Test\n#{body}\nend\n")
      end
    end
    program = "exit TestRun.new(#{files.inspect}, lines: [], options: #{options.inspect}, jobs: #{jobs}, timing: #{"#{folder}/timing/".dump}).call"
    out, status = Open3.capture2e({ "PITWALL_NO_SKIPS" => nil, "PITWALL_AGAIN" => nil }.merge(env), RbConfig.ruby, "-r#{Checkout::ROOT}/test/support/test_run", "-e", program, chdir: Checkout::ROOT)
    [out, status.exitstatus]
  end

  def test_the_last_line_sums_up
    out, status = run_tests({ "Good" => "def test_a = assert(true)\ndef test_b = skip('no x')", "TimedGood" => "def test_c = assert(true)" })
    assert_equal [0, "3 runs, 2 assertions, 0 failures, 0 errors, 1 skips"], [status, out.lines.last.chomp]
    assert_match(/^  1 × no x \(Good\)$/, out)
    out, status = run_tests({ "Bad" => "def test_a = assert_equal(1, 2)\ndef test_b = raise('x')\ndef test_c = skip('no x')" }, env: { "PITWALL_NO_SKIPS" => "1" })
    assert_equal [1, "3 runs, 1 assertions, 2 failures, 1 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_match(/Bad#test_a \[.*bad_test\.rb:3\]:\nExpected: 1\n  Actual: 2$/, out)
  end

  # The second attempt passes; the class counts them in a file.
  COUNTING = "def attempt = File.write(File.join(__dir__, name), '.', mode: 'a').then { File.size(File.join(__dir__, name)) }\n"

  def test_attempts
    tests = { "TimedFlaky" => "#{COUNTING}def test_a = assert_operator(attempt, :>=, 2)\ndef test_b = assert_operator(attempt, :>, 9)\ndef test_c = (attempt; raise 'x')" }
    out, status = run_tests(tests)
    assert_equal [1, "3 runs, 2 assertions, 1 failures, 1 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_equal ["test_a, attempt 1 of 3: failed", "test_a, attempt 2 of 3: passed",
                  *(1..3).map { |n| "test_b, attempt #{n} of 3: failed" }, "test_c, attempt 1 of 3: failed"], out.scan(/^TimedFlaky#(.*) in [\d.]+ s/).flatten.sort
    assert_match(/test_a, attempt 1 of 3: failed in [\d.]+ s: Expected 1 to be >= 2\.$/, out)
    assert_equal({ "test_a" => 2, "test_b" => 3, "test_c" => 1 }, %w[test_a test_b test_c].to_h { |name| [name, File.size(File.join(@dir, "timing", name))] })
  end

  # A program that crashed is not a figure that was missed.
  def test_no_second_attempt_for_what_broke
    out, status = run_tests({ "TimedBroken" => "require #{File.join(Checkout::ROOT, "test/support/recorded_program").dump}\ninclude RecordedProgram\ndef test_a = run_program('exit 1')" })
    assert_equal 1, status
    assert_equal 1, out.scan("attempt").size, out
  end

  def test_elsewhere_nothing_is_tried_again
    out, status = run_tests({ "Flaky" => "#{COUNTING}def test_a = assert_operator(attempt, :>=, 2)" })
    assert_equal [1, "1 runs, 1 assertions, 1 failures, 0 errors, 0 skips"], [status, out.lines.last.chomp]
  end

  def test_once_more_alone
    tests = { "Flaky" => "#{COUNTING}def test_a = assert_operator(attempt, :>=, 2)\ndef test_b = assert(true)", "Steady" => "def test_c = assert(true)" }
    out, status = run_tests(tests, env: { "PITWALL_AGAIN" => "1" }, jobs: 2)
    assert_equal [0, "3 runs, 3 assertions, 0 failures, 0 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_match(/^unsteady: Flaky#test_a failed, then passed alone: Expected 1 to be >= 2\.$/, out)
  end

  def test_what_fails_twice_has_failed
    tests = { "Bad" => "#{COUNTING}def test_a = assert_operator(attempt, :>, 9)\ndef test_b = (attempt; raise 'x')" }
    out, status = run_tests(tests, env: { "PITWALL_AGAIN" => "1" })
    assert_equal [1, "2 runs, 1 assertions, 1 failures, 1 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_equal({ "test_a" => 2, "test_b" => 1 }, %w[test_a test_b].to_h { |name| [name, File.size(File.join(@dir, name))] })
    refute_match(/unsteady/, out)
  end

  def test_many_failures_are_no_accident
    out, status = run_tests({ "Bad" => COUNTING + (1..4).map { |n| "def test_#{n} = assert_operator(attempt, :>=, 2)\n" }.join }, env: { "PITWALL_AGAIN" => "1" })
    assert_equal [1, "4 runs, 4 assertions, 4 failures, 0 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_equal 1, File.size(File.join(@dir, "test_1"))
  end

  def test_a_process_that_dies_is_an_error
    out, status = run_tests({ "Dying" => "def test_a = Process.kill(:KILL, Process.pid)" })
    assert_equal [1, "0 runs, 0 assertions, 0 failures, 1 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_match(/^test: the tests' process ended with .*SIGKILL.* in Dying#test_a$/, out)
    out, status = run_tests({ "Unloadable" => "no_such_method" })
    assert_equal [1, "0 runs, 0 assertions, 0 failures, 1 errors, 0 skips"], [status, out.lines.last.chomp]
  end

  def test_several_processes_run_each_class_once
    tests = (1..12).to_h { |n| ["Class#{n}", "def test_a = assert(sleep(0.02))"] }
    out, status = run_tests(tests, jobs: 3, options: %w[-v])
    assert_equal [0, "12 runs, 12 assertions, 0 failures, 0 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_equal tests.keys.sort, out.scan(/^(Class\d+)#test_a = [\d.]+ s = \.$/).flatten.sort
    assert_equal 10, out[/^Slowest:\n((?:  .*\n)+)/, 1].lines.size
  end

  def test_a_name_that_no_test_has
    out, status = run_tests({ "Good" => "def test_a = assert(true)" }, options: %w[-n /nothing/])
    assert_equal [1, "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips"], [status, out.lines.last.chomp]
    assert_match(/^test: no test has that name$/, out)
  end
end
