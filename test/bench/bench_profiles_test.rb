# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"
require_relative "../test_helper"
require "pitwall/cli/support/advice"
require "pitwall/version"
require "pitwall/analyse"
require "pitwall/analyse/compare/profile_change"
require "pitwall/bench/blocks"
require "pitwall/bench/profiles"
require "pitwall/bench/script"
require "pitwall/bench/whole_command"

class BenchProfilesTest < Minitest::Test
  Bench = Pitwall::Bench
  RUBY = RbConfig.ruby
  CLEAN = { "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }.freeze

  def setup
    @dir = File.realpath(Dir.mktmpdir("pitwall-test-"))
    Dir.mkdir(file("out"))
  end

  def teardown = FileUtils.rm_rf(@dir)

  # A clone's commands run with its bundle; a program below it may have a Gemfile of its own.
  def test_a_command_that_misses_its_gems_in_a_clone_is_told_how_to_run_without_the_bundle
    message = lambda do |words, root|
      subject = Bench::Subject.new(name: "main", command: ["sh", "-c", "echo '#{words}' >&2; exit 1"], dir: @dir,
                                   root: root, env: { "BUNDLE_GEMFILE" => file("Gemfile") })
      measurer = Bench::WholeCommand.new(subject)
      Pitwall::CLI.message(assert_raises(Bench::Failed) { measurer.calibrate(nil) })
    end
    missing = "cannot load such file -- rails (LoadError)"
    expected = /\(cannot load such file -- rails \(LoadError\)\); --no-bundle runs it without Gemfile; --ignore-failure/
    assert_match(expected, message.(missing, @dir))
    refute_includes message.(missing, nil), "--no-bundle"
    refute_includes message.("no such order", @dir), "--no-bundle"
  end

  def test_commands_are_recorded_so_often_in_mixed_order
    program = "File.write('#{file("order")}', ARGV[0], mode: 'a'); " \
              "t = Process.clock_gettime(2) + 0.05; nil while Process.clock_gettime(2) < t"
    seen = []
    entries = %w[A B].map { |name| command(name, RUBY, "-e", program, name) }
    result = profiles(entries, runs: 4, progress: ->(done, all) { seen << [done, all] }).call
    assert_nil result.reason
    assert_equal [4, 4], result.recordings.map(&:size)
    assert_equal [1, 1], result.iterations
    assert_empty result.within
    assert_equal (1..8).map { |done| [done, 8] }, seen
    order = File.read(file("order"))
    order.scan(/../) { |block| assert_equal %w[A B], block.chars.sort }
    refute_equal "AB" * 4, order
    result.recordings.flatten.each do |recording|
      assert_operator recording.segments.sum { |segment| segment.stat("captures") }, :>, 0
    end
    assert_equal 8, Dir[file("out/*")].size, "only recordings are left"
  end

  def test_short_commands_run_more_often
    long, short = [3e9, 0.1e9].map do |ns|
      profiles([command("A", RUBY, iteration_ns: ns)]).instance_variable_get(:@runs)
    end
    assert_equal [6, 20], [long, short]
  end

  def test_of_a_script_only_the_case_counts
    File.write(file("bench.rb"), <<~RUBY)
      def start_up = 200_000.times.map(&:to_s)
      start_up
      def parse(n) = (x = 0; n.times { |i| x += i.to_s.size }; x)
      def render(n) = Array.new(n) { |i| "a\#{i}" }.join
      Benchmark.ips do |x|
        x.report("other") { raise }
        x.report("work") { parse(1000 * ENV["TIMES"].to_i); render(1000) }
      end
    RUBY
    entries = [%w[A 1], %w[B 4]].map { |name, times| script(name, "TIMES" => times) }
    result = profiles(entries, runs: 3, seconds: 0.2).call
    assert_nil result.reason
    assert(result.recordings.flatten.all? { |recording| recording.segments.all?(&:tail) })
    result.iterations.each { |iterations| assert_operator iterations, :>=, 10 }
    a, b = [0, 1].map { |at| side(result, at) }
    change = Pitwall::Analyse::ProfileChange.compare(a: a, b: b, within: result.within, weight: :cpu)
    assert_nil change.reason
    rows = change.rows.to_h { |row| [row.name, row] }
    refute_empty rows.keys.grep(/#parse\z/)
    assert_empty rows.keys.grep(/start_up|Kernel#require|Bench::/)
    parse = rows.fetch(rows.keys.grep(/\AObject#parse/).first)
    assert_operator parse.total.difference.point, :>, 0
    assert_operator parse.total.b / parse.total.a, :>, 2
    assert_equal "bench.rb", parse.path
  end

  def test_what_cannot_be_profiled_is_one_clear_reason
    {
      ["true"] => "no profile of A: it ran no Ruby that could be recorded",
      ["sh", "-c", "echo 'ruby 9.1.0 (x) could not be recorded: no extension' > $PITWALL_PARTS/messages"] =>
        "no profile of A: ruby 9.1.0 (x) could not be recorded: no extension",
      ["sh", "-c", "echo oops >&2; exit 3"] => "no profile of A: ended with status 3 (oops) under the profiler",
      ["sh", "-c", "kill -9 $$"] => "no profile of A: was killed by SIGKILL under the profiler",
      ["sleep", "60"] => "no profile of A: did not end within 1 s under the profiler; --timeout SECONDS allows more"
    }.each do |words, reason|
      result = profiles([command("A", *words)], timeout: words.first == "sleep" ? 0.6 : 20).call
      assert_equal reason, result.reason
      assert_empty result.recordings
      assert_empty result.iterations
      FileUtils.rm_rf(file("out"))
      Dir.mkdir(file("out"))
    end
  end

  def test_a_benchmark_that_fails_only_under_the_profiler_is_a_reason
    File.write(file("bench.rb"), "Benchmark.ips { |x| x.report('a') { raise 'not watched' if ENV['PITWALL_PARTS'] } }")
    result = profiles([script("A", {})], runs: 2, seconds: 0.1).call
    assert_match(/\Ano profile of A: RuntimeError: not watched under the profiler\z/, result.reason)
  end

  # Ends the process without a word to anybody.
  EXIT_GROUP = "syscall(RUBY_PLATFORM.include?('x86_64') ? 231 : 94, 0)"

  def test_iterations_are_unknown_where_a_recording_was_cut_off
    program = "t = Process.clock_gettime(2) + 0.3; nil while Process.clock_gettime(2) < t; #{EXIT_GROUP}"
    result = profiles([command("A", RUBY, "-e", program)], runs: 1).call
    assert_nil result.reason
    assert_equal [nil], result.iterations
  end

  def test_the_settings_of_the_side_reach_it
    program = "File.write('#{file("seen")}', [ENV['MINE'], ENV['RUBYOPT'], Dir.pwd].inspect); sleep 0.05"
    entry = command("A", RUBY, "-e", program, env: { "MINE" => "yes", "RUBYOPT" => "-W0" })
    assert_nil profiles([entry], runs: 1).call.reason
    mine, options, dir = eval(File.read(file("seen")))
    assert_equal ["yes", @dir], [mine, dir]
    assert_match(/\A-r\S+ -W0\z/, options)
  end

  private

  def file(name) = File.join(@dir, name)

  def profiles(entries, **options)
    Bench::Profiles.new(entries, folder: file("out"), random: Random.new(3), **options)
  end

  def command(name, *words, env: {}, iteration_ns: 1e8)
    measurer = Bench::WholeCommand.new(Bench::Subject.new(name: name, command: words, dir: @dir, env: CLEAN.merge(env)))
    entry(measurer, Bench::Script::Calibration.new(batch: 1, batches: 1, warmup: 0, process_ns: iteration_ns,
                                                   iteration_ns: iteration_ns))
  end

  def script(name, env)
    measurer = Bench::Script.new(Bench::Subject.new(name: name, ruby: [RUBY], script: file("bench.rb"), dir: @dir,
                                                    env: CLEAN.merge(env), requires: []))
    entry(measurer, Bench::Script::Calibration.new(batch: 5, batches: 3, warmup: 0, process_ns: 1e8, iteration_ns: 1e6))
  end

  def entry(measurer, calibration)
    Bench::Blocks::Entry.new(measurer: measurer, case: measurer.cases.last, calibration: calibration)
  end

  def side(result, at)
    Pitwall::Analyse::ProfileChange::Side.new(recordings: result.recordings[at].map(&:segments),
                                              iterations: result.iterations[at], base: @dir)
  end
end
