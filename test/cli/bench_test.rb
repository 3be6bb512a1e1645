# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "io/console"
require "pty"

# `pitwall bench`: what it measures, and what becomes of benchmarks that don't behave.
class BenchTest < Minitest::Test
  include CommandLine

  QUICK = %w[--runs 1 --warmup 1].freeze

  # --- what it measures ---

  def test_a_script_for_benchmark_ips_runs_unchanged
    write("it's ips.rb", <<~RUBY)
      require "benchmark/ips"
      Benchmark.ips do |x|
        x.config(time: 1, warmup: 1)
        x.report("join") { ["a", "b"].join }
        x.report("add") { 1 + 1 }
      end
    RUBY
    result = bench("it's ips.rb")
    assert_equal 0, result.status.exitstatus, result.err
    assert_match(/^join +[\d.]+ [kM]?\/s .*[nµ]s/, result.out)
    assert_match(/^add +0 +0 B/, result.out)
    assert_includes result.out, "Again:\npitwall bench --runs 1 --warmup 1 'it'\\''s ips.rb'"
    assert_match(/^ruby +ruby \d/, result.out)
    assert_match(%r{\AMeasured values in \.pitwall/[\w.-]+\.jsonl\n\z}, result.err)
    again = pitwall("report", result.err[%r{\.pitwall/\S+}])
    assert_equal result.out.lines.grep(/^(join|add|ruby)/), again.out.lines.grep(/^(join|add|ruby)/)
  end

  # The fewest processes that can tell cases apart, whatever the budget.
  def test_compare_in_a_script_has_a_verdict
    write("ips.rb", <<~RUBY)
      require 'benchmark/ips'
      Benchmark.ips { |x| x.report('short') { sleep 0.001 }; x.report('long') { sleep 0.003 }; x.compare! }
    RUBY
    result = bench("--budget", "0.1", "ips.rb", options: %w[--warmup 1])
    assert_match(/^fastest first/, result.out)
    assert_match(/^short .* reference$/, result.out)
    assert_match(/^long .* slower$/, result.out)
  end

  def test_machines_get_one_object_and_nothing_else
    write("x.rb", "Pitwall.bench('words') { |x| x.param :n, 1, 2; x.report('split') { |n:| ('a ' * n).split } }")
    result = bench("--format", "json", "x.rb")
    assert_empty result.err
    object = JSON.parse(result.out)
    assert_equal ["pitwall/bench-1", false], [object["schema"], object["settings"]["interrupted"]]
    assert_equal ["split n=1", "split n=2"], object["cases"].map { |kase| kase["name"] }
    objects = object["results"].find { |row| row["name"] == "split n=2" && row["metric"] == "objects" }
    assert_equal [5.0, true], objects.values_at("a", "exact")
    assert_match(/\Aruby \d/, object["facts"]["ruby"])
  end

  def test_reports_go_where_they_are_asked_to
    result = bench("--format", "markdown", "--out", "report.md", "--record", "kept.jsonl", "-e", "1 + 1")
    assert_equal ["", 0], [result.out, result.status.exitstatus]
    assert_match(/\A\*\*1 case\*\*.*^\| `1 \+ 1` \|/m, File.read(file("report.md")))
    lines = File.readlines(file("kept.jsonl")).map { |line| JSON.parse(line) }
    assert_equal ["pitwall/measurements-1", true], [lines.first["schema"], lines.last["end"]]
    refute Dir.exist?(file(".pitwall"))
  end

  def test_only_chooses_cases
    write("x.rb", "Pitwall.bench { |x| x.report('fine') { 1 }; x.report('bad') { raise } }")
    assert_equal 0, bench("--only", "^f", "x.rb").status.exitstatus
    assert_one_line 2, /--only zzz: no case has that in its name; there are fine, bad/, bench("--only", "zzz", "x.rb")
  end

  def test_another_ruby
    write("x.rb", "Pitwall.bench { |x| x.report('yes') { $VERBOSE || raise } }")
    assert_equal 0, bench("--ruby", "#{RUBY} -w", "x.rb").status.exitstatus
    assert_one_line 2, /cannot run no-such-ruby: No such file/, bench("--ruby", "no-such-ruby", "x.rb")
    assert_one_line 2, /cannot run true: it isn't Ruby/, bench("--ruby", "true", "x.rb")
    assert_one_line 2, /--ruby: a command names its own/, bench("--ruby", RUBY, "--", "true")
  end

  # --- whole commands ---

  def test_a_command_is_measured_from_outside
    result = bench("--", RUBY, "--disable=gems", "-e", "$stderr.puts 'E'; puts 'O'")
    assert_equal 0, result.status.exitstatus, result.err
    parts = ["best", "median", "wall time", "user CPU time", "peak memory (RSS)", "page faults without IO"]
    parts.each { |part| assert_includes result.out, part }
    refute_match(/^[EO]$/, result.out + result.err)
  end

  def test_statuses_of_commands
    assert_one_line 127, /no-such-command: command not found/, bench("--", "no-such-command")
    write("data", "")
    assert_one_line 126, /\.\/data: not executable/, bench("--", "./data")
    assert_one_line 4, /ended with status 7; --ignore-failure/, bench("--", "sh", "-c", "exit 7")
    assert_one_line 4, /was killed by SIGTERM/, bench("--", "sh", "-c", "kill -TERM $$")
    assert_equal 0, bench("--ignore-failure", "--", "sh", "-c", "exit 7").status.exitstatus
    assert_empty Dir[file(".pitwall/*")].grep_v(/jsonl/)
    assert_equal 1, Dir[file(".pitwall/*.jsonl")].size, "of what came to nothing no file is left"
  end

  # --- limits ---

  def test_fail_if
    write("x.rb", "Pitwall.bench { |x| x.report('three') { [1.to_s, 2.to_s].join } }")
    assert_equal 0, bench("--fail-if", "objects > 100, wall > 10s", "x.rb").status.exitstatus
    result = bench("--fail-if", "wall > 10s, objects > 2", "--quiet", "x.rb")
    assert_equal [1, "pitwall: --fail-if: objects > 2\n"], [result.status.exitstatus, result.err]
    result = bench("--fail-if", "objects > 2, wall > 1ns", "--quiet", "x.rb")
    assert_equal "pitwall: --fail-if: objects > 2\npitwall: --fail-if: wall > 1ns\n", result.err
    assert_one_line 2, /bench has nothing to compare with/, bench("--fail-if", "wall > 2%", "x.rb")
  end

  def test_a_recording_is_no_benchmark
    write("a.pit", "PITWALL 1\n")
    %w[bench compare].each do |verb|
      expected = /a\.pit: (is a recording, not a benchmark: pitwall report|one recording)/
      assert_match(expected, pitwall(verb, "a.pit").err)
    end
    assert_one_line 2, /a\.pit: is a recording/, bench("a.pit")
  end

  def test_bad_usage_starts_nothing
    write("x.rb", "File.write('started', '')")
    write("keep.txt", "mine")
    {
      [] => /nothing to measure/, %w[nofile.rb] => /nofile.rb: no such file/, %w[.] => /a folder/,
      %w[x.rb -e 1] => /measure one or the other/, %w[--runs 0 x.rb] => /--runs 0/,
      %w[--budget x x.rb] => /--budget x/, %w[--budget -1 x.rb] => /--budget -1/, %w[--only ( x.rb] => /--only \(/,
      %w[--out no/such/file x.rb] => /no\/such\/file/, %w[--format yaml x.rb] => /--format yaml/,
      %w[--fail-if huge x.rb] => /cannot read `huge`/, ["--fail-if", "", "x.rb"] => /cannot read ``/,
      %w[--ruby ' x.rb] => /a quote/, %w[--nonsense x.rb] => /--nonsense/, ["-e", " "] => /-e needs code/,
      %w[--] => /no command after --/, %w[--record no/such/y x.rb] => /no\/such\/y/,
      %w[--record keep.txt x.rb] => /keep.txt: exists and holds no measurements/
    }.each { |arguments, expected| assert_one_line 2, expected, pitwall("bench", *arguments), arguments.inspect }
    refute File.exist?(file("started"))
    assert_equal "mine", File.read(file("keep.txt"))
  end

  # --- benchmarks that don't behave ---

  def test_what_cannot_be_measured_is_one_line
    {
      "raise ArgumentError, \"no\\nsuch luck\"" => /x\.rb, case bad: it raised ArgumentError: no \(.*x\.rb:1\)$/,
      "exit" => /it raised SystemExit/, "Process.kill(:KILL, $$); sleep" => /its process was killed by SIGKILL/,
      "exit!(3)" => /its process ended with status 3/
    }.each { |body, expected| assert_one_line 4, expected, bad_case(body) }
    {
      "def (" => /cannot load it: SyntaxError/,
      "require 'no_such_gem'" => /cannot load it: LoadError: cannot load such file -- no_such_gem/,
      "puts 1" => /x\.rb: no benchmark in it/, "" => /no benchmark in it/,
      "require 'benchmark/ips'; Benchmark.ips { |x| 2.times { x.report('a') { 1 } } }" =>
        /\Apitwall: x\.rb: Benchmark\.ips: two cases are called "a"/
    }.each do |source, expected|
      write("x.rb", source)
      assert_one_line 4, expected, bench("x.rb")
    end
    assert_empty Dir[file(".pitwall/*.jsonl")]
  end

  def test_what_never_returns_is_ended
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    result = bad_case("spawn('sleep', '600'); sleep", "--timeout", "2.5")
    assert_one_line 4, /\Apitwall: x\.rb.*: did not end within 2.5 s; --timeout SECONDS allows more/, result
    write("x.rb", "loop {}")
    assert_one_line 4, /x\.rb: did not end within 0.5 s/, bench("--timeout", "0.5", "x.rb")
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, :<, 300
    assert_nothing_left
  end

  def test_what_prints_forks_or_leaves_threads_is_measured_and_told
    {
      "puts 'OUT'; warn 'ERR'" => /bad/, "Process.wait(fork { exit! })" => /forked/,
      "fork { sleep 600 } if (@n = @n.to_i + 1) == 1; 1" => /forked/,
      "Thread.new { sleep } if Thread.list.size < 4" => /threads were left running/
    }.each do |body, expected|
      result = bad_case(body)
      assert_equal 0, result.status.exitstatus, result.err
      assert_match expected, result.out
      refute_match(/OUT|ERR/, result.out + result.err)
    end
    assert_nothing_left
  end

  # --- Ctrl-C ---

  def test_ctrl_c_shows_what_was_measured
    write("x.rb", "Pitwall.bench { |x| x.report('nap') { sleep 0.01 } }")
    pid = pitwall_start("bench", "--runs", "1000", "--record", "kept.jsonl", "x.rb")
    eventually { File.exist?(file("kept.jsonl")) && File.read(file("kept.jsonl")).scan("\"values\"").size > 1 }
    Process.kill("INT", pid)
    assert_equal 0, wait(pid) { Process.kill("KILL", pid) }.exitstatus
    assert_match(/^nap .*^! Interrupted: this is what had been measured/m, File.read(file("out")))
    assert_nothing_left
  end

  def test_ctrl_c_before_anything_was_measured_ends_by_the_signal
    write("x.rb", "File.write('started', ''); sleep")
    pid = pitwall_start("bench", "x.rb")
    eventually { File.exist?(file("started")) }
    Process.kill("INT", pid)
    assert_equal Signal.list["INT"], wait(pid) { Process.kill("KILL", pid) }.termsig
    assert_equal ["", ""], [File.read(file("out")), File.read(file("err"))]
    assert_nothing_left
    assert_empty Dir[file(".pitwall/*.jsonl")]
  end

  # --- progress ---

  def test_a_terminal_sees_progress_that_goes_away
    write("x.rb", "Pitwall.bench { |x| x.report('nap') { sleep 0.001 } }")
    shown = +""
    command = [RUBY, *START, "bench", "--runs", "3", "--warmup", "1", "x.rb"]
    PTY.spawn(CLEAN.merge("TERM" => "xterm", "LANG" => "C.UTF-8"), *command, chdir: @dir) do |io, _, pid|
      io.winsize = [40, 80]
      begin
        loop { shown << io.readpartial(4096) }
      rescue Errno::EIO, EOFError
        Process.wait(pid)
      end
    end
    shown.force_encoding(Encoding::UTF_8)
    assert_match(/x\.rb \|=+ +\| 2 of at most 3, \d+ s left/, shown)
    left = shown.gsub(/[^\n]*\r\e\[K/, "").gsub(/\e\[\d*m/, "")
    refute_match(/of at most|reading|calibrating/, left)
    assert_match(/\A1 case · 3 processes each/, left)
    left.each_line(chomp: true) { |line| assert_operator line.chomp("\r").size, :<=, 80 }
  end

  private

  def write(name, source) = File.write(file(name), source)

  def bench(*arguments, options: QUICK) = pitwall("bench", *options, *arguments)

  # Without what the developer's setting adds.
  def pitwall(*arguments, **options)
    result = super(*arguments, env: { "PITWALL_DEBUG" => nil }, **options)
    result.out.force_encoding(Encoding::UTF_8)
    result
  end

  def bad_case(body, *options)
    write("x.rb", "Pitwall.bench { |x| x.report('bad') { #{body} } }")
    bench(*options, "x.rb")
  end
end
