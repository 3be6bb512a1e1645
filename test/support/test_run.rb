# frozen_string_literal: true

require "etc"
require "json"
require "rbconfig"
require "tmpdir"

# Runs test files in processes of their own (test_worker.rb) and sums up. First come all but test/timing, several classes at once, then
# test/timing, one test after the other while nothing else runs, each up to three times.
# With `again`, up to AGAIN tests that failed outside test/timing run a second time, alone. One that passes then is listed as
# unsteady, which is a fault of the test or of Pitwall. It does not hold up everything else. More failures than that are no accident.
class TestRun
  WORKER = File.join(__dir__, "test_worker.rb")
  TIMING = "test/timing/"
  ATTEMPTS = 3
  AGAIN = 3
  SLOWEST = 10

  # jobs: how many processes run the first part, e.g. 2
  # lines: [[file, line]…] to run alone, or []
  # options: minitest's, e.g. ["-n", "/fork/"]
  # timing: below which folder tests may run several times
  # strict: a skip is a failure
  # again: failed tests run a second time
  def initialize(files, lines:, options:, jobs:, timing: TIMING, strict: !ENV["PITWALL_NO_SKIPS"].to_s.empty?,
                 again: !ENV["PITWALL_AGAIN"].to_s.empty?)
    @timed, @others = files.partition { |file| file.start_with?(timing) }
    @lines = lines
    @options = options
    @jobs = jobs
    @strict = strict
    @again = again
    @unsteady = []
    @results = []
    @broken = []
  end

  # @return [Integer] exit status
  def call
    began = now
    @options += ["--seed", Random.new_seed.modulo(0xFFFF).to_s] if (@options & %w[-s --seed]).empty? && @options.grep(/\A--seed=/).empty?
    puts "Run options: #{@options.join(" ")}"
    run(@others, @jobs, 1) if @others.any?
    run_again if @again && !@interrupted
    if @timed.any? && !@interrupted
      puts "\ntest/timing, one after the other:"
      run(@timed, 1, ATTEMPTS)
    end
    report(now - began)
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # A crash or an exception is no accident: only assertions that failed are looked at again.
  def run_again
    failed = @results.select { |result| result["code"] == "F" && result["again"] }
    return if failed.empty? || failed.size > AGAIN

    puts "\n\nagain, alone:"
    @results -= failed
    names = failed.map { |result| Regexp.escape(result["name"]) }
    before, @options = @options, [*@options, "-n", "/\\A(?:#{names.join("|")})\\z/"]
    run(@others, 1, 1)
    @options = before
    @unsteady = failed.select { |first| @results.any? { |second| second["name"] == first["name"] && second["code"] == "." } }
    missing = failed.reject { |first| @results.any? { |second| second["name"] == first["name"] } }
    @results.concat(missing)
  end

  def run(files, jobs, attempts)
    lines = @lines.select { |file, _| files.include?(file) }
    Dir.mktmpdir("pitwall-tests") do |folder|
      queue = File.join(folder, "queue")
      File.write(queue, "0")
      plans = Array.new(jobs) do |number|
        plan = { files: files, lines: lines, queue: (queue if jobs > 1), results: File.join(folder, "results#{number}"), attempts: attempts }
        File.write(File.join(folder, "plan#{number}"), JSON.generate(plan))
        plan
      end
      $stdout.flush
      # Ctrl-C reaches the workers as well: they end, and what they did is summed up.
      before = trap("INT") { @interrupted = true }
      pids = plans.each_index.map { |number| Process.spawn(RbConfig.ruby, WORKER, File.join(folder, "plan#{number}"), *@options) }
      statuses = pids.map { |pid| Process.wait2(pid).last }
      trap("INT", before)
      exit(2) if statuses.any? { |status| status.exitstatus == 2 }
      plans.zip(statuses) { |plan, status| collect(plan[:results], status) }
    end
  end

  def collect(file, status)
    last = nil
    ended = []
    File.foreach(file, encoding: "UTF-8") do |line|
      object = JSON.parse(line)
      object["began"] ? last = object["began"] : ended << object
    rescue JSON::ParserError
      next # the process was killed while it wrote
    end
    @results.concat(ended)
    # A worker ends with 0 or 1. With 1 it must have told of a failure, or it could not load the tests.
    return if status.success? || (status.exitstatus == 1 && ended.any? { |result| %w[F E].include?(result["code"]) })

    @broken << "the tests' process ended with #{status}#{" in #{last}" if last && ended.none? { |result| result["name"] == last }}"
  rescue Errno::ENOENT
    @broken << "the tests' process ended with #{status} before it ran a test"
  end

  def report(seconds)
    failed = @results.select { |result| %w[F E].include?(result["code"]) }
    skipped = @results.select { |result| result["code"] == "S" }
    puts format("\n\nFinished in %.1f s.\n\n", seconds)
    failed.each.with_index(1) { |result, number| puts "#{number}) #{result["text"]}\n\n" }
    @unsteady.each { |result| puts "unsteady: #{result["name"]} failed, then passed alone: #{result["message"].to_s.split("\n").join(" ")[0, 300]}" }
    list_skips(skipped)
    list_slowest
    @broken.each { |text| puts "test: #{text}" }
    nothing = @results.empty? && @broken.empty?
    puts "test: no test has that name" if nothing
    errors = failed.count { |result| result["code"] == "E" } + @broken.size
    failures = failed.count { |result| result["code"] == "F" } + (@strict ? skipped.size : 0)
    puts "#{@results.size} runs, #{@results.sum { |result| result["assertions"] }} assertions, #{failures} failures, #{errors} errors, " \
         "#{@strict ? 0 : skipped.size} skips"
    failures + errors == 0 && !nothing && !@interrupted ? 0 : 1
  end

  def list_skips(skipped)
    return if skipped.empty?

    puts @strict ? "Skipped, where nothing may be (PITWALL_NO_SKIPS):" : "Skipped:"
    lines = skipped.group_by { |result| result["message"] }.map { |why, tests| "  #{tests.size} × #{why} (#{tests.map { |test| test["name"][/\A[^#]+/] }.uniq.first(3).join(", ")})" }
    puts lines.sort, ""
  end

  def list_slowest
    slowest = @results.max_by(SLOWEST) { |result| result["seconds"] }
    return if @results.size <= SLOWEST

    puts "Slowest:", slowest.map { |result| format("  %6.1f s  %s", result["seconds"], result["name"]) }, ""
    classes = @results.group_by { |result| result["name"][/\A[^#]+/] }
    classes = classes.map { |name, tests| [tests.sum { |test| test["seconds"] }, tests.size, name] }.max(SLOWEST)
    puts "Slowest classes:", classes.map { |sum, tests, name| format("  %6.1f s  %s (%d)", sum, name, tests) }, ""
  end
end
