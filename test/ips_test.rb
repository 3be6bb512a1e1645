# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/command_line"

# The replacement for benchmark-ips, in files that plain `ruby` runs.
class IpsTest < Minitest::Test
  include CommandLine

  QUICK = "x.config(time: 0.02, warmup: 0.005);"

  def script(text, flags: ["--disable-gems"])
    File.write(file("own.rb"), "require 'pitwall/ips'\n#{text}")
    capture({}, RUBY, "-w", "-I#{Checkout::ROOT}/lib", *flags, "own.rb")
  end

  def ran(text, **options)
    result = script(text, **options)
    assert_predicate result.status, :success?, result.err
    result
  end

  def test_prints_a_table_without_a_verdict
    result = ran(<<~RUBY)
      2.times do
        Benchmark.ips do |x|
          #{QUICK}
          x.report("nothing") {}
          x.report("sleep") { sleep 0.004 }
          x.report("loop") { |times| i = 0; (Object.new; i += 1) while i < times }
          x.report("code", "Object.new")
          x.save! "results"
          x.compare!
        end
      end
    RUBY
    out = result.out.force_encoding(Encoding::UTF_8)
    assert_equal "pitwall: x.save! has no effect here\n", result.err
    assert_match(/^ +iterations\/s  time\/iteration   spread  objects\/iteration$/, out)
    assert_match(/^nothing +[\d.]+ [kM] +[\d.]+ [nµ]s +(±[\d.]+%|–) +0\.00$/, out)
    assert_match(/^sleep +[\d.]+ +[\d.]+ ms +(±[\d.]+%|–) +0\.00$/, out)
    %w[loop code].each { |label| assert_match(/^#{label} .* 1\.00$/, out) }
    assert_match(/^Time an iteration, compared with nothing:\nnothing +1\.00 ×\n/, out)
    assert_match(/^sleep +\d{4,}\.\d\d ×\n/, out)
    assert_equal 1, out.scan("One process can't tell small differences").size
    assert_includes out, "`pitwall bench own.rb`"
    refute_match(/slower|faster|same/, out)
  end

  def test_returns_what_was_measured
    result = ran(<<~RUBY)
      report = Benchmark.ips(quiet: true, time: 0.02, warmup: 0) do |x|
        x.report("pair") { [Object.new] }
        x.report("sleep") { sleep 0.003 }
      end
      pair, slow = report.entries
      p report.entries.map(&:label), pair.objects, report.compare
      p pair.ips > slow.ips, (3e6..3e9).cover?(slow.ns), (pair.ips * pair.ns).round == 1_000_000_000
      p pair.stats.central_tendency == pair.ips, pair.error_percentage == pair.spread * 100, report.data.first[:name]
      p slow.iterations == slow.rounds, pair.iterations > 100
    RUBY
    assert_equal ["[\"pair\", \"sleep\"]", "2.0", "false", *%w[true] * 5, "\"pair\"", "true", "true"],
                 result.out.lines(chomp: true)
    assert_empty result.err
  end

  def test_pitwall_bench_and_ips_quick
    result = ran(<<~RUBY)
      Pitwall.bench("lists") do |x|
        x.time = 0.02
        x.warmup = 0
        x.param :n, 1, 50
        x.setup { |n:| warn "setup \#{n}"; Array.new(n) }
        x.before { |list| list.dup }
        x.report("clear") { |list| raise "not fresh" if list.empty?; list.clear }
        x.after { |_, n:| warn "after \#{n}" }
        x.compare! order: :baseline
      end
      Benchmark.ips_quick(:upcase, :downcase, on: "x", time: 0.01, warmup: 0)
    RUBY
    assert_match(/^lists$/, result.out)
    assert_match(/^clear n=1 .* 0\.00\nclear n=50 .* 0\.00$/, result.out)
    assert_match(/compared with clear n=1:\n/, result.out)
    assert_match(/^upcase .* 1\.00\ndowncase .* 1\.00$/, result.out)
    assert_equal "setup 1\nsetup 50\nafter 1\nafter 50\n", result.err
  end

  def test_a_mistake_is_one_line
    { "Benchmark.ips { |x| x.report('a') { }; x.report('a') { } }" =>
        "two cases are called \"a\": give each its own label (Pitwall::UsageError)",
      "Benchmark.ips { |x| x.time = -1; x.report('a') { } }" =>
        "x.time = -1: seconds, 0 to 86400 (Pitwall::UsageError)",
      "Benchmark.ips { |x| x.report('a') { raise 'own' } }" => "own (RuntimeError)" }.each do |text, message|
      result = script(text)
      refute_predicate result.status, :success?
      assert_includes result.err.lines.first, message
    end
  end

  # Code that has loaded benchmark-ips relies on its methods.
  def test_refuses_where_benchmark_ips_is_loaded
    FileUtils.mkdir_p(file("peer/benchmark"))
    File.write(file("peer/benchmark/ips.rb"), "module Benchmark; module IPS; VERSION = '2.0'; end; end")
    paths = ["-I#{Checkout::ROOT}/lib", "-I#{file("peer")}"]
    result = capture({}, RUBY, *paths, "-rbenchmark/ips", "-e", "require 'pitwall/ips'")
    expected = %r{benchmark-ips 2\.0 is already loaded: require "pitwall/ips" instead of it \(Pitwall::StateError\)}
    assert_match(expected, result.err)
    # After pitwall/ips, `require "benchmark/ips"` loads nothing.
    program = "p defined?(Benchmark::IPS::VERSION)"
    result = capture({}, RUBY, *paths, "-rpitwall/ips", "-rbenchmark/ips", "-e", program)
    assert_equal ["nil\n", ""], [result.out, result.err]
  end

  # Also by its path: `require_relative "../lib/pitwall/ips"`.
  def test_does_nothing_below_the_bench_command
    File.write(file("own.rb"), "require '#{Checkout::ROOT}/lib/pitwall/ips'\nrequire 'pitwall/ips'\n" \
                               "Benchmark.ips { |x| x.report('a') { } }")
    read, write = IO.pipe
    child = File.join(Checkout::ROOT, "lib/pitwall/bench_child/assembled.rb")
    pid = Process.spawn(CLEAN, RUBY, child, "9", "list", file("own.rb"),
                        9 => write, in: File::NULL, out: file("out"), err: file("out"))
    write.close
    assert_predicate wait(pid) { Process.kill("KILL", pid) }, :success?
    assert_equal "case\t0\t0\t\ta\t\t\nend\n", read.read
    assert_empty File.read(file("out"))
  ensure
    read&.close
  end
end
