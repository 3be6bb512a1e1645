# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../workspace/scratch_repository"
require "json"
require "stringio"
require "pitwall"
require "pitwall/cli"

# `pitwall compare --bisect` of commits that sleep.
class CommitSearchTimingTest < Minitest::Test
  include ScratchRepository

  # The second commit can't be run.
  def test_the_commit_is_found
    commit("work.rb" => "1\n")
    commit("work.rb" => "exit 1")
    commit("work.rb" => "sleep 0.2\n")
    commit("work.rb" => "sleep 0.2 # x\n")
    words = ["compare", "--bisect", "HEAD~3..HEAD", "--pairs", "8", "--format", "json",
             "--", RUBY, "--disable-gems", "work.rb"]
    status, out, err = run_pitwall(*words)
    assert_equal 0, status, err
    search = JSON.parse(out)["search"]
    first, second = git("rev-parse", "HEAD~2"), git("rev-parse", "HEAD~1")
    assert_equal ["found", [first, second], [first]],
                 [search["verdict"], *%w[candidates skipped].map { |key| search[key].map { |commit| commit["id"] } }]
    status, out, = run_pitwall("report", Dir[File.join(@repo, ".pitwall/*.jsonl")].first)
    assert_equal 0, status
    assert_match(/\AOne of 2 commits changed it, with 99% confidence: /, out)
  end

  private

  def run_pitwall(*words)
    before, ENV["PITWALL_CACHE"] = ENV["PITWALL_CACHE"], @cache
    out, err = StringIO.new, StringIO.new
    status = Dir.chdir(@repo) { Pitwall::CLI.run(words, out: out, err: err) }
    [status, out.string, err.string]
  ensure
    ENV["PITWALL_CACHE"] = before
  end
end
