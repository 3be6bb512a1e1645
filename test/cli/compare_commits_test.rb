# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../workspace/scratch_repository"
require "json"
require "stringio"
require "pitwall"
require "pitwall/cli"

# `pitwall compare --each` in real repositories, on counts that are the same each time.
class CompareCommitsTest < Minitest::Test
  include ScratchRepository

  BENCH = "require_relative 'lib'\nPitwall.bench { |x| x.report('make') { make } }\n"

  def setup
    super
    @environment = ENV.to_h.slice("PITWALL_CACHE", "PITWALL_DEBUG")
    ENV.update("PITWALL_CACHE" => @cache, "PITWALL_DEBUG" => nil)
  end

  def teardown
    %w[PITWALL_CACHE PITWALL_DEBUG].each { |name| ENV[name] = @environment[name] }
    super
  end

  # A document, a commit that can't be loaded, a merge, and one that makes more objects.
  def test_each_commit_alone_and_all_together
    commit("lib.rb" => make(1), "x.rb" => BENCH)
    commit("README.md" => "x")
    broken = commit("lib.rb" => "def make = )")
    slow = commit("lib.rb" => make(10))
    git("checkout", "--quiet", "-b", "topic")
    commit("other.rb" => "1")
    git("checkout", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "-m", "Merge it", "topic")
    words = %w[--pairs 1 --warmup 1 --format json x.rb]
    status, out, err = run_pitwall("compare", "--each", "HEAD~4..HEAD", *words)
    assert_equal 3, status, err
    assert_match(/^pitwall: HEAD~4\.\.HEAD: 1 merge in it: all that a merge brings is measured as one commit/, err)
    assert_match(/^pitwall: not measured: \h{8} change: changes nothing that is measured \(README\.md\)$/, err)
    report = JSON.parse(out)
    # Three commits, all together, and two that may be tried alone.
    assert_in_delta 0.01 / 6, report.dig("settings", "alpha"), 1e-9
    commits = report["commits"]
    reasons = commits["skipped"].map { |each| each["reason"] }
    assert_equal 2, reasons.size
    assert_match(/README/, reasons.first)
    assert_match(/\Ax\.rb \(\h{8}\): .*SyntaxError/, reasons.last)
    outcome = commits["outcomes"].first
    assert_equal [[broken, slow], [git("rev-parse", "HEAD")]],
                 outcome["commits"].map { |each| each["commits"].map { |commit| commit["id"] } }
    objects = report["results"].select { |effect| effect["metric"] == "objects" }
    assert_equal [%w[more same more], [10, 1, 10]],
                 [objects.map { |effect| effect["verdict"] }, objects.map { |effect| effect.dig("ratio", "point") }]
    refute_nil outcome["together"]
    file = Dir[File.join(@repo, ".pitwall/*.jsonl")].first
    status, out, = run_pitwall("report", file)
    assert_equal 0, status
    assert_match(/^#{slow[0, 8]} change allocates more objects: objects allocated 1 → 10, /, out)
    assert_match(/^all together +/, out)
  end

  # The base can't be built, and a later commit can't be loaded.
  def test_a_commit_without_one_before_it_is_listed_once
    commit("lib.rb" => make(1), "x.rb" => BENCH, "Gemfile" => "raise 'no'")
    ids = [commit("Gemfile" => nil), commit("lib.rb" => "def make = )"), commit("lib.rb" => make(2))]
    status, out, err = run_pitwall("compare", "--each", "HEAD~3..HEAD", "--pairs", "1", "--warmup", "1", "--format",
                                   "json", "x.rb")
    assert_equal 3, status, err
    skipped = JSON.parse(out).dig("commits", "skipped").to_h { |each| [each["id"], each["reason"]] }
    assert_equal JSON.parse(out).dig("commits", "skipped").size, skipped.size
    assert_equal [true, "no commit before it can be built", true, false],
                 [skipped.key?(git("rev-parse", "HEAD~3")), skipped[ids[0]], skipped.key?(ids[1]), skipped.key?(ids[2])]
  end

  def test_a_search_without_an_answer
    commit("x.rb" => "Pitwall.bench { |x| x.report('a') { 1 }; x.report('b') { 2 } }")
    commit("y.rb" => "1")
    status, _, err = run_pitwall("compare", "--bisect", "HEAD~1..HEAD", "--", RUBY, "--disable-gems", "y.rb")
    assert_equal 4, status, err
    words = %w[--pairs 1 --warmup 1 --only a x.rb]
    status, out, err = run_pitwall("compare", "--bisect", "HEAD~1..HEAD", *words)
    assert_equal 3, status, err
    assert_match(/\AUndecided whether the ends of HEAD~1\.\.HEAD differ by more than the margin: --budget/, out)
    status, again, = run_pitwall("report", Dir[File.join(@repo, ".pitwall/*.jsonl")].first)
    assert_equal [0, out.lines.first], [status, again.lines.first]
    assert_one_line(2, /the search takes one case, and there are a, b; --only chooses one/,
                    "--bisect", "HEAD~1..HEAD", "x.rb")
    assert_one_line(2, /--bisect: leave out --fail-if/, "--bisect", "HEAD~1..HEAD", "--fail-if", "slower", "x.rb")
  end

  def test_what_is_refused
    assert_one_line(2, /the repository has no commits/, "--each", "main..HEAD", "-e", "1")
    commit("lib.rb" => "1")
    commit("README.md" => "x")
    assert_one_line(2, /--each measures the commits of a range; it takes no other sides/, "--each", "HEAD~1..HEAD",
                    "--rev", "main", "lib.rb")
    assert_one_line(2, /nothing to run/, "--each", "HEAD~1..HEAD")
    assert_one_line(2, /--each: leave out --why/, "--each", "HEAD~1..HEAD", "--why", "-e", "1")
    assert_one_line(4, /HEAD~1\.\.HEAD: nothing to compare: \h{8} changes nothing that is measured \(README\.md\)/,
                    "--each", "HEAD~1..HEAD", "-e", "1")
    # Code that reads the document is measured.
    status, _, err = run_pitwall("compare", "--each", "HEAD~1..HEAD", "--pairs", "1", "--warmup", "1",
                                 "-e", "File.size?('README.md')")
    assert_equal 3, status, err
  end

  # A gate measures nothing where only documents have changed.
  def test_a_gate_on_documents
    commit("lib.rb" => make(1), "x.rb" => BENCH)
    commit("README.md" => "x", "x.rb" => "#{BENCH}#")
    sides = %w[--rev HEAD~1 --rev HEAD x.rb --fail-if]
    status, out, err = run_pitwall("compare", *sides, "slower by 3%")
    reason = "not measured: only README.md, x.rb changed, which can't change what is measured"
    assert_equal [0, "N#{reason[1..]}\n", ""], [status, out, err]
    status, out, err = run_pitwall("compare", *sides, "slower by 3%", "--format", "json")
    assert_equal [0, reason, "pitwall: #{reason}\n"], [status, JSON.parse(out).dig("skipped", "reason"), err]
    status, _, err = run_pitwall("compare", *sides, "wall > 1s", "--pairs", "1", "--warmup", "1")
    assert_equal 0, status, err
    assert_match(/Measured values in/, err)
  end

  private

  def make(objects) = "def make = #{objects}.times { Object.new }\n"

  def run_pitwall(*words)
    out, err = StringIO.new, StringIO.new
    status = Dir.chdir(@repo) { Pitwall::CLI.run(words, out: out, err: err) }
    [status, out.string, err.string]
  end

  def assert_one_line(status, expected, *words)
    result = run_pitwall("compare", *words)
    assert_equal status, result.first, result.last
    assert_match expected, result.last
    assert_equal 1, result.last.lines.reject { |line| line.start_with?("pitwall: not measured") }.size, result.last
  end
end
