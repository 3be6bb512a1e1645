# frozen_string_literal: true

require_relative "../test_helper"
require "stringio"
require "tmpdir"
require "fileutils"
require "pitwall/cli"
require_relative "../support/imported"

# What was imported is shown, exported and compared like what Pitwall recorded.
class ImportCommandTest < Minitest::Test
  FILES = %w[stackprof/wall-raw.json stackprof/wall.dump stackprof/object-raw.dump vernier/threads.json
             vernier/objects.json.gz vernier/retained.json memory_profiler/results.json ruby_prof/wall.callgrind
             ruby_prof/allocations.callgrind callgrind/plain.out].freeze

  def setup
    @dir = Dir.mktmpdir("pitwall-test-")
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def file(name) = File.join(@dir, name)

  def run_verb(*arguments)
    out, err = StringIO.new, StringIO.new
    status = Pitwall::CLI.run(arguments, out: out, err: err)
    refute_match(/this is a bug/, err.string, arguments.join(" "))
    [status, out.string, err.string]
  end

  def import(name, to)
    status, out, = run_verb("import", File.join(Imported::REAL, name), "--out", file(to))
    assert_equal 0, status, name
    assert_match(/: imported from /, out)
    file(to)
  end

  def collapsed(name, stacks)
    File.write(file("#{name}.txt"), stacks.map { |stack, count| "#{stack} #{count}\n" }.join)
    status, = run_verb("import", file("#{name}.txt"), "--out", file("#{name}.pit"))
    assert_equal 0, status
    file("#{name}.pit")
  end

  # Two samples of a coin: the interval is that of two binomial shares.
  def test_shares_of_counts_are_compared
    a = collapsed("a", "main;a;b" => 700, "main;a" => 300)
    b = collapsed("b", "main;a;b" => 400, "main;a" => 300, "main;c" => 300)
    status, text, err = run_verb("compare", a, b)
    assert_equal [0, ""], [status, err]
    assert_match(/Counts recorded: \S*a.pit 1,000 · \S*b.pit 1,000 \(one run each: no verdict on which does more\)/,
                 text.gsub(/\s+/, " "))
    assert_match(/Why: \+300 counts in c \(self 0 → 300, 0% → 30.0%/, text)
    assert_match(/^ −300 .* 70.0% +40.0%  b$/, text)
    assert_match(/without times in the files, counts are compared/, text)
    refute_match(/\d (ns|µs|ms|s)\b|time changed|faster/, text)

    found = JSON.parse(run_verb("compare", a, b, "--format", "json")[1]).fetch("why").first
    assert_equal ["captures", [[1000], [1000]]], found.values_at("weight", "recorded_counts")
    method = found["methods"].find { |row| row["name"] == "c" }["self"]
    assert_equal [0, 300], method["time"].values_at("a_counts", "b_counts")
    change = method["change"]
    # Under no difference the share is 15% on both sides.
    error = Math.sqrt(2 * 0.15 * 0.85 / 1000)
    quantile = -Pitwall::Analyse::Statistics.student_quantile((1 - change["level"]) / 2, 1998)
    assert_in_delta 0.3 + (quantile * error), change["high"], 1e-4

    same = collapsed("same", "main;a;b" => 690, "main;a" => 310)
    assert_match(/Why: no method's part of the counts changed beyond noise/, run_verb("compare", a, same)[1])
    status, text, = run_verb("compare", a, b, "--view", "structure")
    assert_equal 4, status
    assert_match(/Structure: not known/, text)
  end

  def test_views_exports_and_the_page
    FILES.each do |name|
      recording = import(name, "#{name.tr("/", "-")}.pit")
      [[], ["--tree"], ["--bottom-up"], ["--format", "json"], ["--format", "html"]].each do |options|
        status, out, err = run_verb("report", recording, *options)
        assert_equal [0, ""], [status, err], "#{name} #{options}"
        refute_match(/\bNaN\b|Infinity\b.*%/, out.lines.first(200).join) unless options.include?("html")
      end
      %w[collapsed speedscope callgrind pprof].each do |format|
        status, = run_verb("export", recording, "--to", format, "--out", file("#{name.tr("/", "-")}.#{format}"))
        assert_includes [0, 2], status, "#{name} #{format}"
      end
    end
  end

  def test_reports_tell_where_figures_come_from
    _, out, err = run_verb("report", import("ruby_prof/wall.callgrind", "a.pit"))
    assert_match(/^imported from callgrind, wall\.callgrind/, out)
    assert_match(/i call paths are estimates/, out)
    refute_match(/of the CPU time|what Pitwall needed to start/, out + err)
    _, out, = run_verb("report", import("memory_profiler/results.json", "b.pit"))
    assert_match(/^imported from memory_profiler, results\.json\n\d+ objects, .* retained, \d+ B$/, out)
    refute_match(/0 s wall|in GC|by the VM/, out)
  end

  def test_comparisons
    a, b = import("stackprof/wall-raw.json", "a.pit"), import("vernier/threads.json", "b.pit")
    status, out, = run_verb("compare", a, b)
    assert_includes [0, 1], status
    refute_empty out
  end

  def test_a_failed_import_leaves_nothing
    File.binwrite(file("bad.dump"), Marshal.dump({ mode: :wall, samples: 1, frames: { 1 => Object.new } }))
    status, out, err = run_verb("import", file("bad.dump"), "--out", file("x.pit"))
    assert_equal [5, "", 1], [status, out, err.lines.size]
    assert_match(/holds an object \(Object\): only plain data/, err)
    assert_equal ["bad.dump"], Dir.children(@dir)
  end
end
