# frozen_string_literal: true

require "json"
require "open3"
require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/page_contents"
require_relative "../support/recording_builder"

# Which text of a file a page shows after the file has changed: the text of the commit that was checked out when the
# recording began.
class SourceHistoryTest < Minitest::Test
  include CommandLine
  include PageContents

  RECORDED = Time.utc(2024, 3, 1, 12)

  def git(*words, at: RECORDED, dir: file("app"))
    date = at.strftime("%Y-%m-%d %H:%M:%S +0000")
    env = { "GIT_AUTHOR_DATE" => date, "GIT_COMMITTER_DATE" => date, "GIT_AUTHOR_NAME" => "a",
            "GIT_AUTHOR_EMAIL" => "a@b", "GIT_COMMITTER_NAME" => "a", "GIT_COMMITTER_EMAIL" => "a@b",
            "GIT_CONFIG_GLOBAL" => File::NULL }
    out, status = Open3.capture2e(env, "git", *words, chdir: dir)
    assert status.success?, out
    out.strip
  end

  def write(name, text, at: nil)
    path = file(name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    File.utime(at, at, path) if at
    path
  end

  # A file's text, committed; answers the commit.
  def commit(name, text, at:, dir: "app")
    write("#{dir}/#{name}", text)
    git("add", "-A", at: at, dir: file(dir))
    git("commit", "-qm", "x", at: at, dir: file(dir))
    git("rev-parse", "HEAD", dir: file(dir))
  end

  def setup
    super
    %w[app other].each do |dir|
      FileUtils.mkdir_p(file(dir))
      git("init", "-q", "-b", "main", dir: file(dir))
    end
  end

  # What a page of a recording of these paths holds: path → [lines, commit].
  def sources(*paths, options: [], **head)
    bytes = RecordingBuilder.build(started_at_ns: RECORDED.to_i * 1_000_000_000, **head) do |segment|
      segment.thread 1, "main"
      paths.each { |path| segment.row stack: [["Shop.load", path, 1, 2]], wall: 1_000, cpu: 1_000 }
    end
    File.binwrite(file("app/x.pit"), bytes)
    result = pitwall("report", "x.pit", "--format", "html", "--out", file("x.html"), *options, dir: file("app"))
    assert result.status.success?, result.err
    object, = unpack(File.read(file("x.html"), encoding: "UTF-8"))
    object["source"].to_h { |source| [object["strings"][source["path"]], [source["text"], source["commit"]]] }
  end

  def test_a_changed_file_is_shown_as_it_was_committed_before_the_recording
    commit("shop.rb", "older\n", at: RECORDED - 9000)
    then_head = commit("shop.rb", "def load\n  1\nend\n", at: RECORDED - 60)
    commit("shop.rb", "newer\n", at: RECORDED + 60)
    path = file("app/shop.rb")
    assert_equal({ path => [["def load", "  1", "end"], then_head] }, sources(path))
    FileUtils.rm(path)
    assert_equal({ path => [["def load", "  1", "end"], then_head] }, sources(path), "a file that is gone")
    assert_empty sources(path, options: ["--no-source"])
    assert_empty sources(path, options: ["--redact"])
  end

  # Commits of both branches are older than the recording: which was checked out then is in the log of HEAD alone.
  def test_the_commit_is_the_one_that_was_checked_out
    base = commit("shop.rb", "base\n", at: RECORDED - 9000)
    git("checkout", "-qb", "side", at: RECORDED - 500)
    side = commit("shop.rb", "side\n", at: RECORDED - 400)
    git("checkout", "-q", "main", at: RECORDED + 100)
    path = file("app/shop.rb")
    assert_equal({ path => [["side"], side] }, sources(path))
    FileUtils.rm_rf(file("app/.git/logs"))
    assert_equal({ path => [["base"], base] }, sources(path), "without that log: the last commit before")
  end

  def test_the_commit_that_the_recording_names
    first = commit("shop.rb", "first\n", at: RECORDED - 9000)
    commit("shop.rb", "second\n", at: RECORDED - 100)
    commit("shop.rb", "third\n", at: RECORDED + 100)
    path = file("app/shop.rb")
    assert_equal({ path => [["first"], first] }, sources(path, commit: first))
    lines = pitwall("report", "x.pit", "--view", "lines", dir: file("app")).out
    assert_includes lines.split.join(" "), "Changed since the recording, shown as of commit #{first[0, 10]}: shop.rb"
    ["0" * 40, "HEAD", "--all", ""].each do |name|
      assert_equal ["second"], sources(path, commit: name).dig(path, 0), name
    end
  end

  def test_a_file_that_has_not_changed_is_shown_as_it_stands
    commit("shop.rb", "committed\n", at: RECORDED - 60)
    path = write("app/shop.rb", "not committed\n", at: RECORDED - 30)
    assert_equal({ path => [["not committed"], nil] }, sources(path))
  end

  # Nothing outside the repository around the working directory is asked for, whatever a recording names.
  def test_other_repositories_are_not_asked
    commit("shop.rb", "here\n", at: RECORDED - 60)
    commit("theirs.rb", "theirs\n", at: RECORDED - 60, dir: "other")
    FileUtils.mkdir_p(file("app/nested"))
    git("init", "-q", dir: file("app/nested"))
    commit("inner.rb", "inner\n", at: RECORDED - 60, dir: "app/nested")
    untracked = write("app/untracked.rb", "untracked\n")
    assert_empty sources(file("other/theirs.rb"), "#{file("app")}/../other/theirs.rb", "#{file("app")}/./shop.rb",
                         file("app/nested/inner.rb"), untracked, "HEAD:shop.rb", "#{file("app")}/.git/config.rb")
  end

  def test_without_a_repository_or_an_earlier_commit
    commit("shop.rb", "later\n", at: RECORDED + 60)
    assert_empty sources(file("app/shop.rb"))
    FileUtils.rm_rf(file("app/.git"))
    assert_empty sources(file("app/shop.rb"))
  end
end
