# frozen_string_literal: true

require_relative "test_helper"
require_relative "workspace/scratch_repository"
require "psych"
require "shellwords"

# The job that measures pull requests, in a fresh clone of a fork, and what its workflows may do.
class CiGateTest < Minitest::Test
  include ScratchRepository

  FOLDER = File.join(Checkout::ROOT, "doc/ci")
  SCRIPT = File.join(FOLDER, "gate.sh")
  BENCH = "require_relative '../lib/shop'\nPitwall.bench { |x| x.report('make') { make } }\n"

  def setup
    super
    commit("lib/shop.rb" => "def make = Object.new\n", "benchmark/x.rb" => BENCH, "README.md" => "a")
    @fork = File.join(@root, "fork")
    git("clone", "--quiet", "file://#{@repo}", @fork)
    # One pair is enough for counts.
    start = [RUBY, *CommandLine::START].map { |word| Shellwords.escape(word) }.join(" ")
    write({ "pitwall" => "#!/bin/sh\nshift\nexec #{start} compare --pairs 1 --warmup 1 \"$@\"\n" }, dir: @root)
    File.chmod(0o755, File.join(@root, "pitwall"))
  end

  # The merge of a fork's branch, as a forge checks it out: without history, credentials or a token.
  def test_the_job_in_a_clone_of_a_fork
    status, out = gate("HEAD^1", "benchmark/x.rb", files: { "README.md" => "b" })
    assert_equal 0, status, out
    assert_includes out, "Not measured: only README.md changed"
    status, out = gate("HEAD^1", "benchmark/x.rb", "benchmark/none.rb",
                       files: { "lib/shop.rb" => "def make = 3.times { Object.new }\n" }, limit: "objects > 0%")
    assert_equal 1, status, out
    report = File.read(File.join(@job, "pitwall.md"))
    assert_match(/^### benchmark\/x\.rb$.*^\*\*The gate fails: objects &gt; 0% holds for make\*\*$/m, report)
    assert_match(/`make` \| objects allocated \| 1 \| 3 \|/, report)
    assert_includes report, "### benchmark/none.rb\n\nCould not be measured (status 2)"
    assert_includes out, report
  end

  def test_what_is_missing
    status, out = gate("nowhere", "benchmark/x.rb", files: { "lib/shop.rb" => "" })
    assert_equal 2, status
    assert_match(/^pitwall: --rev nowhere: no such revision .*this clone is shallow/, out)
    assert_equal 2, gate("HEAD^1", files: {}).first
  end

  # What measures runs foreign code, and may only read. What may write runs nothing of the pull request.
  def test_the_workflows_are_safe_for_forks
    measure, comment, gitlab = %w[github-measure github-comment gitlab].map do |name|
      [File.read(File.join(FOLDER, "#{name}.yml")), Psych.safe_load(File.read(File.join(FOLDER, "#{name}.yml")))]
    end
    assert_equal({ "contents" => "read" }, measure.last["permissions"])
    refute_match(/secrets\.|github\.token|pull_request_target/, measure.first)
    steps = measure.last.dig("jobs", "measure", "steps")
    checkout = steps.find { |step| step["uses"].to_s.start_with?("actions/checkout") }
    assert_equal false, checkout.dig("with", "persist-credentials")
    refute_match(/actions\/checkout|gem install|pull_request_target/, comment.first)
    # Names that a fork chooses come as variables, not as text of the script.
    comment.last.dig("jobs", "comment", "steps").each { |step| refute_includes step["run"].to_s, "${{" }
    assert_equal "none", gitlab.last.dig("pitwall-comment", "variables", "GIT_STRATEGY")
    # Only the job of the environment has the token.
    assert_equal "pitwall-comment", gitlab.last.dig("pitwall-comment", "environment", "name")
    refute gitlab.last["pitwall"].key?("environment")
  end

  # What a pull request's code wrote becomes neither a command of the forge nor a way to the token.
  def test_the_report_is_untrusted_text
    hostile = "/approve\n \u00a0/merge\r/close\r\n\0/label x\n| `a/b` | 1 |\n\t/x\n\u00e9 /y\n"
    write({ "pitwall.md" => hostile }, dir: @root)
    %w[gitlab github-comment].each do |name|
      text = File.read(File.join(FOLDER, "#{name}.yml"))
      # A link could name a file that has the token.
      assert_match(/ ! -L (?:report\/)?pitwall\.md /, text)
      script = text[/head -c 60000.*?sed '[^']+'/m].sub("report/", "")
      out, status = Open3.capture2e("sh", "-c", script, chdir: @root)
      assert_predicate status, :success?, out
      assert_equal "\\/approve\n \u00a0\\/merge/close\n\\/label x\n| `a/b` | 1 |\n\t\\/x\n\u00e9 \\/y\n", out
    end
  end

  private

  # Commits to the fork, merges that, and runs the job in a fresh clone of the merge.
  def gate(*words, files:, limit: "slower by 3%")
    commit(files, dir: @fork)
    git("fetch", "--quiet", @fork, "HEAD")
    git("checkout", "--quiet", "--detach", "main")
    git("merge", "--quiet", "--no-ff", "-m", "merge", "FETCH_HEAD")
    @job = Dir.mktmpdir("job-", @root)
    git("clone", "--quiet", "--no-local", "--depth", "2", "file://#{@repo}", @job)
    environment = CommandLine::CLEAN.merge("PATH" => "#{@root}:#{ENV["PATH"]}", "PITWALL_CACHE" => @cache,
                                           "PITWALL_DEBUG" => nil, "PITWALL_LIMIT" => limit)
    out, status = Open3.capture2e(environment, SCRIPT, *words, chdir: @job)
    [status.exitstatus, out]
  end
end
