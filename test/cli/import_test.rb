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
