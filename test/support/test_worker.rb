# frozen_string_literal: true

# A process in which script/test runs tests: `ruby test_worker.rb PLAN.json [minitest's options]`. The plan is a JSON object:
#
#   files     test files to load, e.g. ["test/cli/cli_test.rb"]
#   lines     [[file, line]…]: run only the tests around these lines; empty: all
#   queue     a file that counts the classes begun: each process takes the next one; nil: this process runs all
#   results   where to write what became of each test, one JSON object a line (see TestWorker::Reporter)
#   attempts  how often a test may run, e.g. 3 for test/timing, else 1

require "json"
require_relative "../../script/checkout"

PLAN = JSON.parse(File.read(ARGV.shift))
Checkout.use_test_gems
require "minitest"
require "minitest/autorun"

module TestWorker
  # Writes each test's beginning and result for script/test, and prints the progress. script/test prints the summary.
  class Reporter < Minitest::AbstractReporter
    def initialize(io, verbose)
      super()
      @io = io
      @verbose = verbose
      @results = File.open(PLAN.fetch("results"), "w")
      @results.sync = true
      @passed = true
    end

    # The last test begun without a result is the one in which this process died.
    def prerecord(test_class, name) = write("began" => "#{test_class}##{name}")

    def record(result)
      @passed &&= result.passed? || result.skipped?
      name = "#{result.klass}##{result.name}"
      write("name" => name, "seconds" => result.time, "assertions" => result.assertions, "code" => result.result_code,
            "message" => result.failure&.message, "text" => result.to_s,
            "again" => result.failures.all? { |failure| TestWorker.figure?(failure) })
      return if PLAN.fetch("attempts") > 1 # Attempts prints them

      @io.print(@verbose ? format("%s = %.2f s = %s\n", name, result.time, result.result_code) : result.result_code)
      @io.flush
    end

    def passed? = @passed

    private

    def write(object) = @results.puts(JSON.generate(object.transform_values { |value| value.is_a?(String) ? value.encode("UTF-8", invalid: :replace, undef: :replace).scrub : value }))
  end

  # A test that judges time may fail beside other work: it is run again, and each attempt is printed. What fails otherwise than by
  # a figure (an exception, a program that crashed or hung) is not run again.
  module Attempts
    def run_one_method(test_class, name, reporter)
      reporter.prerecord(test_class, name)
      attempts = PLAN.fetch("attempts")
      1.upto(attempts) do |attempt|
        result = Minitest.run_one_method(test_class, name)
        again = !result.passed? && !result.skipped? && attempt < attempts && result.failures.all? { |failure| TestWorker.figure?(failure) }
        puts TestWorker.attempt_line(result, attempt, attempts) if attempts > 1
        break reporter.record(result) unless again
      end
    end
  end

  module_function

  def figure?(failure) = !failure.is_a?(Minitest::UnexpectedError) && !(defined?(RecordedProgram::Broken) && failure.is_a?(RecordedProgram::Broken))

  def attempt_line(result, attempt, attempts)
    outcome = result.skipped? ? "skipped" : result.passed? ? "passed" : "failed"
    why = ": #{result.failure.message.scrub.split("\n").map(&:strip).join(" ")[0, 300]}" if result.failure
    format("%s#%s, attempt %d of %d: %s in %.1f s%s", result.klass, result.name, attempt, attempts, outcome, result.time, why)
  end

  # Large classes first, so that no process has one left when the others are done; within a size by chance.
  def classes
    found = Minitest::Runnable.runnables.reject { |test_class| test_class.instance_methods.grep(/\Atest_/).empty? }
    found.shuffle(random: Random.new(Minitest.seed)).sort_by.with_index { |test_class, at| [-test_class.instance_methods.grep(/\Atest_/).size / 10, at] }
  end

  # The next class's number that no other process has begun.
  def next_class
    File.open(PLAN.fetch("queue"), File::RDWR) do |file|
      file.flock(File::LOCK_EX)
      number = file.read.to_i
      file.rewind
      file.write(number + 1)
      number
    end
  end

  def each_class
    return classes.each { |test_class| yield test_class } unless PLAN["queue"]

    all = classes
    while (test_class = all[next_class])
      yield test_class
    end
  end

  # "Class#test_name" of the test method around the line.
  def test_at(file, line)
    full = File.realpath(file)
    tests = Minitest::Runnable.runnables.flat_map do |test_class|
      test_class.public_instance_methods(true).grep(/\Atest_/).filter_map do |name|
        where, first = test_class.instance_method(name).source_location
        [first, "#{test_class}##{name}"] if where && File.exist?(where) && File.realpath(where) == full
      end
    end
    _, name = tests.select { |first, _| first <= line }.max_by(&:first)
    name or abort_with("#{file}:#{line}: no test at or above that line")
  end

  def abort_with(text)
    warn "test: #{text}"
    exit! 2 # minitest's at_exit must not run what is loaded so far
  end
end

module Minitest
  extensions << "test_worker"

  def self.plugin_test_worker_init(options)
    reporter.reporters.replace([TestWorker::Reporter.new(options[:io], options[:verbose])])
  end

  def self.__run(reporter, options) = TestWorker.each_class { |test_class| test_class.run(reporter, options) }
end
Minitest::Runnable.singleton_class.prepend(TestWorker::Attempts)

PLAN.fetch("files").each { |file| require File.join(Checkout::ROOT, file) }
if PLAN.fetch("lines").any?
  ARGV.push("-n", "/\\A(?:#{PLAN.fetch("lines").map { |file, line| Regexp.escape(TestWorker.test_at(file, line)) }.join("|")})\\z/")
end
